//! The event stream parser: each rule of the format, and that no split of the bytes matters.

use proptest::prelude::*;

use super::*;

fn record(event: Option<&str>, data: &str) -> Record {
    Record { event: event.map(str::to_owned), data: data.to_owned() }
}

fn parse_pieces<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    bytes_max: usize,
) -> (Vec<Record>, Result<(), TooLong>) {
    let mut parser = SseParser::new(bytes_max);
    let mut records = Vec::new();
    for piece in pieces {
        if let Err(error) = parser.push(piece, &mut records) {
            return (records, Err(error));
        }
    }
    (records, Ok(()))
}

fn parse(bytes: &[u8]) -> Vec<Record> {
    let (records, outcome) = parse_pieces([bytes], 1000);
    assert_eq!(outcome, Ok(()));
    records
}

#[test]
fn every_line_ending_ends_a_line_once() {
    let expected = [record(None, "a"), record(None, "b\nc")];
    assert_eq!(parse(b"data: a\n\ndata: b\ndata: c\n\n"), expected);
    assert_eq!(parse(b"data: a\r\n\r\ndata: b\r\ndata: c\r\n\r\n"), expected);
    assert_eq!(parse(b"data: a\r\rdata: b\rdata: c\r\r"), expected);
}

#[test]
fn one_space_after_the_colon_is_not_data() {
    assert_eq!(
        parse(b"data:a\n\ndata: b\n\ndata:  c\n\n"),
        [record(None, "a"), record(None, "b"), record(None, " c")]
    );
}

#[test]
fn an_event_name_belongs_to_its_own_record_only() {
    assert_eq!(
        parse(b"event: error\ndata: a\n\nevent: lost\n\ndata: b\n\n"),
        [record(Some("error"), "a"), record(None, "b")]
    );
}

#[test]
fn comments_and_other_fields_are_passed_over() {
    assert_eq!(
        parse(b": OPENROUTER PROCESSING\n\nid: 7\nretry: 10\ndata: a\nnonsense\n\n"),
        [record(None, "a")]
    );
}

#[test]
fn a_field_without_a_colon_has_an_empty_value() {
    assert_eq!(parse(b"data\n\ndata\ndata\n\n"), [record(None, ""), record(None, "\n")]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start() {
    assert_eq!(parse(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"), [record(None, "a")]);
}

#[test]
fn broken_characters_are_replaced() {
    assert_eq!(parse(b"data: a\xffb\n\n"), [record(None, "a\u{fffd}b")]);
}

#[test]
fn a_record_without_its_blank_line_is_dropped() {
    assert_eq!(parse(b"data: a\n\ndata: b\n"), [record(None, "a")]);
}

#[test]
fn a_line_over_the_limit_is_an_error_after_the_records_before_it() {
    let stream = b"data: a\n\ndata: 4567\n\ndata: 45678\n\n";
    assert_eq!(
        parse_pieces([stream.as_slice()], 10),
        (vec![record(None, "a"), record(None, "4567")], Err(TooLong { bytes_max: 10 }))
    );
}

#[test]
fn many_short_lines_cannot_grow_a_record_over_the_limit() {
    assert_eq!(
        parse_pieces([b"data:12345\ndata:6789\n\ndata:12345\ndata:67890\n\n".as_slice()], 10),
        (vec![record(None, "12345\n6789")], Err(TooLong { bytes_max: 10 }))
    );
}

/// Streams dense with what the format gives a meaning to.
fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just(b"data".to_vec()),
        Just(b"event".to_vec()),
        Just(b":".to_vec()),
        Just(b" ".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just("é€😀".as_bytes().to_vec()),
        Just(BYTE_ORDER_MARK.to_vec()),
        Just(vec![0xff]),
        Just(b"a long run of text".to_vec()),
    ];
    prop::collection::vec(token, 0..60).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn any_split_gives_the_same_records(
        bytes in stream_bytes(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        prop_assert_eq!(parse_pieces(pieces, 40), parse_pieces([bytes.as_slice()], 40));
        let single_bytes = bytes.chunks(1);
        prop_assert_eq!(parse_pieces(single_bytes, 40), parse_pieces([bytes.as_slice()], 40));
    }
}

#[test]
fn a_frame_is_read_back_as_it_was_written() {
    assert_eq!(&frame(Some(7), "e", "{}")[..], b"id: 7\nevent: e\ndata: {}\n\n");
    let stream = [&frame(Some(7), "e", "a: b")[..], PING, &frame(None, "f", "")].concat();
    assert_eq!(parse(&stream), [record(Some("e"), "a: b"), record(Some("f"), "")]);
}
