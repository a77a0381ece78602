//! The real terminal: keys from it, the screen on it, and whatever it was before when we leave, by
//! whatever way that is.

use std::io::{self, IsTerminal, Write};
use std::panic;

use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, EventStream, KeyCode, KeyEvent,
    KeyEventKind, KeyModifiers,
};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};
use crossterm::{cursor, execute};
use futures_util::StreamExt;
use rustix::process::{Signal, getpid, kill_process};

use super::choose::Size;
use super::core::Input;
use super::drive::Face;
use super::key::Key;
use super::line::Line;
pub use super::paint::Colours;
use super::paint::Painter;
use super::screen::Foot;
use crate::world::BoxFuture;

/// Whether a person is there to talk to.
pub fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

#[derive(Debug)]
pub struct Screen {
    keys: EventStream,
    painter: Painter,
    columns: u16,
    /// A size that was found and not told yet.
    found: Option<Size>,
    /// Lines that wait for a foot of that size.
    held: Vec<Line>,
}

impl Screen {
    /// Takes the terminal over. It is given back when this is dropped, and by a panic.
    pub fn open(colours: Colours) -> io::Result<Self> {
        enter()?;
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            restore();
            before(panicked);
        }));
        let Size { columns, .. } = Self::size()?;
        Ok(Self {
            keys: EventStream::new(),
            painter: Painter::new(colours, columns),
            columns,
            found: None,
            held: Vec::new(),
        })
    }

    pub fn size() -> io::Result<Size> {
        let (columns, rows) = size()?;
        Ok(Size { columns, rows })
    }

    /// Stops this program, as Ctrl-Z does where nobody takes its keys.
    fn suspend(&mut self) -> io::Result<Input> {
        write(&self.painter.leave())?;
        restore();
        kill_process(getpid(), Signal::TSTP)?;
        // Somebody has brought us back.
        enter()?;
        Ok(self.resized(Self::size()?))
    }

    fn resized(&mut self, Size { columns, rows }: Size) -> Input {
        self.columns = columns;
        self.painter.resized(columns);
        Input::Resized { columns, rows }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing can be done for a terminal that takes no more.
        if !self.held.is_empty() {
            let _ = write(&self.painter.paint(&self.held, &Foot::default()));
        }
        let _ = write(&self.painter.leave());
        restore();
    }
}

impl Face for Screen {
    fn next(&mut self) -> BoxFuture<'_, Option<Input>> {
        Box::pin(async move {
            if let Some(size) = self.found.take() {
                return Some(self.resized(size));
            }
            loop {
                let input = match self.keys.next().await?.ok()? {
                    Event::Key(event) => match key(event) {
                        Some(Key::Control('z')) => self.suspend().ok(),
                        key => key.map(Input::Key),
                    },
                    Event::Paste(text) => Some(Input::Paste(text)),
                    Event::Resize(columns, rows) => Some(self.resized(Size { columns, rows })),
                    Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
                };
                if input.is_some() {
                    return input;
                }
            }
        })
    }

    fn show(&mut self, finished: &[Line], foot: &Foot) -> io::Result<()> {
        self.held.extend_from_slice(finished);
        // A foot that was made for another size would be broken by the terminal.
        if let Ok(size) = Self::size()
            && size.columns != self.columns
        {
            self.found = Some(size);
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        write(&self.painter.paint(&held, foot))
    }

    fn clear(&mut self) -> io::Result<()> {
        write(&self.painter.clear())
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnableBracketedPaste)
}

/// As it was before. Doing it twice does no harm.
fn restore() {
    // Nothing can be done for a terminal that takes no more.
    let _ = execute!(io::stdout(), DisableBracketedPaste, cursor::Show);
    let _ = disable_raw_mode();
}

fn write(bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    let alt = event.modifiers.contains(KeyModifiers::ALT);
    let shift = event.modifiers.contains(KeyModifiers::SHIFT);
    let key = match event.code {
        KeyCode::Char(c) if control => Key::Control(c.to_ascii_lowercase()),
        KeyCode::Char(c) if alt => Key::Alt(c),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter if alt || shift || control => Key::NewLine,
        KeyCode::Enter => Key::Enter,
        KeyCode::Tab => Key::Tab,
        KeyCode::Backspace if alt => Key::Alt('\u{7f}'),
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Left if control || alt => Key::WordLeft,
        KeyCode::Right if control || alt => Key::WordRight,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Esc => Key::Escape,
        // Those do nothing here.
        _ => return None,
    };
    Some(key)
}
