//! What a call gave, as text for a model: texts as they are, structured content as JSON, everything
//! else as a note of what it was. Cut at the bounds of all results. Pure.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde::Deserialize;
use serde_json::Value;

use crate::config::words;
use crate::tool::ToolOutput;
use crate::tool::text::Sheet;

/// What `hide` leaves of a result; before it is cut, so that nothing is left of what it hides.
pub(super) fn output(result: &CallToolResult, hide: impl Fn(&str) -> String) -> ToolOutput {
    let pieces = result.content.iter().map(piece).collect();
    let text = whole(pieces, result.structured_content.as_ref(), hide);
    if result.is_error == Some(true) { Err(text) } else { Ok(text) }
}

/// The same of a result that the library cannot read whole, such as one with content of a kind that it does
/// not know. None where it is no result.
pub(super) fn odd_output(result: &Value, hide: impl Fn(&str) -> String) -> Option<ToolOutput> {
    let content = result["content"].as_array()?;
    let read = |block: &Value| {
        ContentBlock::deserialize(block).map_or_else(|_| odd(block), |block| piece(&block))
    };
    let structured = result.get("structuredContent");
    let text = whole(content.iter().map(read).collect(), structured, hide);
    Some(if result["isError"] == true { Err(text) } else { Ok(text) })
}

fn whole(
    mut pieces: Vec<String>,
    structured: Option<&Value>,
    hide: impl Fn(&str) -> String,
) -> String {
    if let Some(structured) = structured
        // Servers say the same as text, for clients that do not know structured content.
        && !pieces.iter().any(|piece| says(piece, structured))
    {
        pieces.push(structured.to_string());
    }
    let pieces: Vec<String> = pieces.iter().map(|piece| hide(piece)).collect();
    bounded(&pieces)
}

fn odd(block: &Value) -> String {
    match block["type"].as_str() {
        Some(kind) => format!("[Left out: content of the kind {}.]", words::quoted(kind)),
        None => "[Left out: content of no kind.]".to_owned(),
    }
}

fn piece(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => note("an image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => note("a sound", &audio.mime_type, audio.data.len()),
        ContentBlock::ResourceLink(link) => format!("[A link to the resource {}.]", link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("of an unknown type");
                note(&format!("the resource {uri}"), kind, blob.len())
            }
            _ => "[A resource of an unknown kind is left out.]".to_owned(),
        },
        // The library may know more kinds some day.
        _ => "[Content of an unknown kind is left out.]".to_owned(),
    }
}

fn note(what: &str, kind: &str, base64_bytes: usize) -> String {
    format!("[Left out: {what} ({kind}, {} bytes).]", base64_bytes / 4 * 3)
}

fn says(piece: &str, structured: &Value) -> bool {
    serde_json::from_str::<Value>(piece).is_ok_and(|said| said == *structured)
}

fn bounded(pieces: &[String]) -> String {
    let mut sheet = Sheet::default();
    let all = pieces.iter().map(String::len).sum::<usize>();
    let kept = fill(&mut sheet, pieces);
    let missing = all.saturating_sub(kept);
    let told = format!("{missing} of {all} bytes are left out: ask for less at once");
    if missing > 0 { sheet.end(&[told]) } else { sheet.end(&[]) }
}

/// Puts there what fits, and returns how much that is.
fn fill(sheet: &mut Sheet, pieces: &[String]) -> usize {
    let mut kept = 0;
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 && sheet.piece("\n").is_err() {
            return kept;
        }
        for line in piece.split_inclusive('\n') {
            let line = &line[..line.floor_char_boundary(Sheet::BYTES_MAX / 2)];
            if sheet.piece(line).is_err() {
                return kept;
            }
            kept += line.len();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(form: Value) -> CallToolResult {
        serde_json::from_value(form).unwrap()
    }

    #[test]
    fn texts_and_structured_content_are_kept_and_the_rest_is_noted() {
        let given = result(json!({
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "resource_link", "uri": "file:///x", "name": "x"},
                {"type": "resource", "resource": {"uri": "a:b", "text": "inside"}},
            ],
            "structuredContent": {"count": 1},
        }));
        let told = "one\n[Left out: an image (image/png, 3 bytes).]\n[A link to the resource \
            file:///x.]\ninside\n{\"count\":1}";
        assert_eq!(output(&given, str::to_owned), Ok(told.to_owned()));
    }

    #[test]
    fn content_of_unknown_kinds_takes_nothing_else_along() {
        let given = json!({
            "content": [
                {"type": "hologram", "data": "AAAA"},
                {"type": "text", "text": "one"},
                {"type": "text"},
                5,
            ],
            "structuredContent": {"count": 1},
        });
        assert!(serde_json::from_value::<CallToolResult>(given.clone()).is_err());
        let told = "[Left out: content of the kind \"hologram\".]\none\n[Left out: content of the kind \
            \"text\".]\n[Left out: content of no kind.]\n{\"count\":1}";
        assert_eq!(odd_output(&given, str::to_owned), Some(Ok(told.to_owned())));
        let failed = json!({"content": [{"type": "x"}], "isError": true});
        let told = "[Left out: content of the kind \"x\".]".to_owned();
        assert_eq!(odd_output(&failed, str::to_owned), Some(Err(told)));
        assert_eq!(odd_output(&json!({"text": "x"}), str::to_owned), None);
        assert_eq!(odd_output(&json!("x"), str::to_owned), None);
    }

    #[test]
    fn what_is_said_twice_is_told_once_and_an_error_is_one() {
        let given = result(json!({
            "content": [{"type": "text", "text": "{\"a\": 1}"}],
            "structuredContent": {"a": 1},
            "isError": true,
        }));
        assert_eq!(output(&given, str::to_owned), Err("{\"a\": 1}".to_owned()));
    }

    #[test]
    fn what_is_hidden_is_hidden_before_a_line_is_cut() {
        let long = format!("{}a-secret", "x".repeat(Sheet::BYTES_MAX / 2 - 3));
        let given = result(json!({"content": [{"type": "text", "text": long}]}));
        let told = output(&given, |text| text.replace("a-secret", "[redacted]")).unwrap();
        let all = Sheet::BYTES_MAX / 2 + 7;
        let end = format!("x[re\n[7 of {all} bytes are left out: ask for less at once]\n");
        assert!(told.ends_with(&end), "{}", &told[told.len() - 100..]);
    }

    #[test]
    fn a_giant_result_is_cut_and_says_so() {
        let given = result(json!({"content": [{"type": "text", "text": "x\n".repeat(20_000)}]}));
        let told = output(&given, str::to_owned).unwrap();
        assert!(told.ends_with("x\n[20000 of 40000 bytes are left out: ask for less at once]\n"));
    }
}
