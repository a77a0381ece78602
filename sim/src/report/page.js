// What the reader does: choose a run, filter, search, select with the pointer or the keyboard.

const report = JSON.parse(document.getElementById('report').textContent);
const root = document.getElementById('root');
const QUIET = new Set(['batch', 'live']); // not shown at first
// Whoever asks a model shows it already: with many lanes the model's own is left out at first.
const shownAtFirst = (lane, _, lanes) => lane.kind !== 'model' || lanes.length <= LANES_CALM;
let leave = () => {};

const scheme = () => {
  const next = { auto: 'light', light: 'dark', dark: 'auto' };
  const names = { auto: '◐ auto', light: '○ light', dark: '● dark' };
  const now = () => document.documentElement.dataset.scheme ?? 'auto';
  const toggle = button(names[now()], 'Colours: automatic, light or dark', () => {
    const chosen = next[now()];
    if (chosen === 'auto') delete document.documentElement.dataset.scheme;
    else document.documentElement.dataset.scheme = chosen;
    toggle.textContent = names[chosen];
  });
  toggle.className = 'scheme';
  return toggle;
};

const texts = (item) => [item.title, ...(item.more ?? []).map(([, text]) => text)].join('\n').toLowerCase();

const view = (number) => {
  const run = report.runs[number];
  const kinds = [...new Set(run.items.map((item) => item.kind))];
  const shown = { lanes: new Set([...run.lanes.keys()].filter((index) => shownAtFirst(run.lanes[index], index, run.lanes))), kinds: new Set(kinds.filter((kind) => !QUIET.has(kind))) };
  const state = { selected: undefined, found: undefined };
  const drawing = chart(state);
  const aside = make('div', 'side');
  const width = () => drawing.scroller.clientWidth || root.clientWidth;
  const relayout = () => drawing.show(layout(run, shown, width()));

  const close = () => {
    aside.replaceChildren();
    drawing.cover({ right: 0, bottom: 0 });
    drawing.scroller.focus({ preventScroll: true });
  };
  const inspect = () => {
    if (state.selected === undefined) return;
    aside.replaceChildren(details(run, run.items[state.selected], close));
    const [panel, whole] = [aside.getBoundingClientRect(), drawing.scroller.getBoundingClientRect()];
    const beside = panel.width < whole.width / 2;
    drawing.cover({ right: beside ? panel.width : 0, bottom: beside ? 0 : panel.height });
    drawing.reveal(state.selected);
  };
  const select = (item) => {
    state.selected = item;
    if (aside.childElementCount > 0) inspect();
    else drawing.reveal(item);
  };

  const tools = make('div', 'tools');
  tools.append(...kindButtons(run, kinds, shown, relayout), laneMenu(run, shown, relayout));
  const search = searching(run, shown, state, drawing, select, relayout);
  tools.append(search.box);

  drawing.scroller.addEventListener('click', (event) => {
    const chip = event.target.closest('[data-index]');
    if (!chip) return;
    select(Number(chip.dataset.index));
    inspect();
  });
  drawing.scroller.addEventListener('keydown', (event) => {
    const target = moved(drawing.placed(), state.selected, event.key);
    if (target !== undefined) select(target);
    else if (event.key === 'Enter' || event.key === ' ') inspect();
    else return;
    event.preventDefault();
  });
  const keys = (event) => {
    if (event.key === 'Escape') close();
    else if (event.key === '/' && event.target.tagName !== 'INPUT') {
      event.preventDefault();
      search.input.focus();
    }
  };
  const resized = () => relayout();
  document.addEventListener('keydown', keys);
  window.addEventListener('resize', resized);
  leave = () => {
    document.removeEventListener('keydown', keys);
    window.removeEventListener('resize', resized);
  };
  const body = make('div', 'body');
  body.append(drawing.scroller, aside);
  root.replaceChildren(heading(report, run, scheme(), () => { location.hash = ''; }), tools, body);
  relayout();
};

const kindButtons = (run, kinds, shown, changed) => Object.keys(ABOUT).filter((kind) => kinds.includes(kind)).map((kind) => {
  const count = run.items.filter((item) => item.kind === kind).length;
  const toggle = button('', '', () => {
    if (!shown.kinds.delete(kind)) shown.kinds.add(kind);
    toggle.setAttribute('aria-pressed', String(shown.kinds.has(kind)));
    changed();
  });
  toggle.className = `kind ${kind}`;
  toggle.dataset.kind = kind;
  toggle.setAttribute('aria-pressed', String(shown.kinds.has(kind)));
  toggle.append(make('span', 'glyph', GLYPHS[kind]), make('span', '', `${ABOUT[kind]} ${count}`));
  return toggle;
});

const laneMenu = (run, shown, changed) => {
  const menu = make('details', 'lanes');
  const summary = make('summary', '', 'Lanes');
  const list = make('div', 'list');
  const boxes = [];
  const told = () => { summary.textContent = `Lanes ${shown.lanes.size} of ${run.lanes.length}`; };
  const all = (wanted) => {
    boxes.forEach((box, index) => {
      box.checked = wanted(run.lanes[index]);
      if (box.checked) shown.lanes.add(index);
      else shown.lanes.delete(index);
    });
    told();
    changed();
  };
  const buttons = make('div', 'buttons');
  buttons.append(button('all', 'Show all lanes', () => all(() => true)), button('none', 'Hide all lanes', () => all(() => false)),
    button('agents', 'Show agents only', () => all((lane) => lane.kind === 'agent')));
  list.append(buttons);
  run.lanes.forEach((lane, index) => {
    const label = make('label', '');
    const box = make('input', '');
    box.type = 'checkbox';
    box.checked = shown.lanes.has(index);
    box.addEventListener('change', () => {
      if (box.checked) shown.lanes.add(index);
      else shown.lanes.delete(index);
      told();
      changed();
    });
    boxes.push(box);
    label.append(box, make('span', '', `${'› '.repeat(lane.depth)}${lane.name}`), make('span', 'muted', lane.kind));
    list.append(label);
  });
  told();
  menu.append(summary, list);
  return menu;
};

// Marks what contains the words; Enter goes from one to the next.
const searching = (run, shown, state, drawing, select, changed) => {
  const box = make('span', 'search');
  const input = make('input', '');
  input.type = 'search';
  input.placeholder = 'Search ( / )';
  input.setAttribute('aria-label', 'Search');
  const count = make('output', 'muted', '');
  const all = run.items.map(texts);
  let hits = [];
  const look = () => {
    const words = input.value.trim().toLowerCase();
    hits = words === '' ? [] : drawing.placed().items.map((entry) => entry.index).filter((index) => all[index].includes(words));
    state.found = words === '' ? undefined : new Set(hits);
    const hidden = words === '' ? 0 : all.filter((text) => text.includes(words)).length - hits.length;
    count.textContent = words === '' ? '' : `${hits.length} found${hidden > 0 ? `, ${hidden} hidden` : ''}`;
    drawing.redraw();
  };
  input.addEventListener('input', look);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      input.value = '';
      look();
      drawing.scroller.focus();
    } else if (event.key === 'Enter' && hits.length > 0) {
      const at = hits.indexOf(state.selected);
      const step = event.shiftKey ? -1 : 1;
      const next = at < 0 ? 0 : (at + step + hits.length) % hits.length;
      select(hits[next]);
      count.textContent = `${next + 1} of ${hits.length}`;
    }
  });
  box.append(input, count);
  return { box, input };
};

// Where a key leads from the selected item.
const moved = (placed, selected, key) => {
  const order = placed.byIndex.get(selected);
  const { items } = placed;
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  const sides = { ArrowRight: 1, ArrowLeft: -1 };
  if (items.length === 0) return undefined;
  if (key === 'Home') return items[0].index;
  if (key === 'End') return items[items.length - 1].index;
  if (!(key in steps) && !(key in sides)) return undefined;
  if (order === undefined) return items[0].index;
  const { item, top, index } = items[order];
  if (key in steps) {
    for (let at = order + steps[key]; at >= 0 && at < items.length; at += steps[key]) {
      if (items[at].item.lane === item.lane) return items[at].index;
    }
    return index;
  }
  const from = placed.column.get(item.lane);
  for (let place = from + sides[key]; place >= 0 && place < placed.lanes.length; place += sides[key]) {
    const lane = placed.lanes[place].index;
    const beside = items.filter((entry) => entry.item.lane === lane);
    if (beside.length > 0) {
      return beside.reduce((near, entry) => (Math.abs(entry.top - top) < Math.abs(near.top - top) ? entry : near)).index;
    }
  }
  return index;
};

const open = () => {
  leave();
  leave = () => {};
  const asked = /^#run-(\d+)$/.exec(location.hash);
  const number = asked ? Number(asked[1]) : report.runs.length === 1 && report.summary.length === 0 ? 0 : -1;
  if (report.runs[number]) {
    view(number);
    return;
  }
  root.replaceChildren(index(report, scheme(), (chosen) => { location.hash = `#run-${chosen}`; }));
};

window.addEventListener('hashchange', open);
open();
