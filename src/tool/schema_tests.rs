//! What models are told about arguments, before and after they got them wrong.

use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Where.
    path: String,
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 20))]
    lines: u64,
    quick: Option<bool>,
    #[serde(default)]
    #[schemars(length(max = 2))]
    edits: Vec<Edit>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
struct Edit {
    old: String,
}

fn ten() -> u64 {
    10
}

fn told(given: &Value) -> Result<Arguments, String> {
    let definition = definition::<Arguments>("edit", "Edits.");
    typed("edit", fitting(&definition, given)?)
}

#[test]
fn a_schema_has_nothing_that_a_model_does_not_need() {
    assert_eq!(
        *definition::<Arguments>("edit", "Edits.").parameters,
        json!({
            "type": "object",
            "properties": {
                "path": {"description": "Where.", "type": "string"},
                "lines": {"type": "integer", "minimum": 1, "maximum": 20, "default": 10},
                "quick": {"type": "boolean"},
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"old": {"type": "string"}},
                        "additionalProperties": false,
                        "required": ["old"],
                    },
                    "maxItems": 2,
                },
                "_parallel": {
                    "type": "boolean",
                    "description": "Run all tool calls of this message at the same time.",
                },
            },
            "additionalProperties": false,
            "required": ["path"],
        })
    );
}

#[test]
fn what_fits_is_taken_with_its_defaults() {
    let given = json!({"path": "a", "quick": null, "lines": null, "_parallel": true});
    let expected = Arguments { path: "a".to_owned(), lines: 10, quick: None, edits: vec![] };
    assert_eq!(told(&given), Ok(expected));
}

#[test]
fn what_does_not_fit_is_named_with_what_would() {
    for (given, problem) in [
        (json!({}), "`path` is missing, it must be a string"),
        (json!({"path": null}), "`path` must be a string, not null"),
        (json!({"path": 1}), "`path` must be a string, not 1"),
        (
            json!({"path": "a", "lines": "12"}),
            "`lines` must be a whole number from 1 to 20, not the string \"12\"",
        ),
        (json!({"path": "a", "lines": 21}), "`lines` must be a whole number from 1 to 20, not 21"),
        (
            json!({"path": "a", "lines": 1.5}),
            "`lines` must be a whole number from 1 to 20, not 1.5",
        ),
        (
            json!({"path": "a", "quick": "yes"}),
            "`quick` must be true or false, not the string \"yes\"",
        ),
        (json!({"path": "a", "line": 2}), "there is no argument `line`, did you mean `lines`?"),
        (
            json!({"path": "a", "colour": 2}),
            "there is no argument `colour`, there are: path, lines, quick, edits",
        ),
        (
            json!({"path": "a", "edits": [{"old": "x"}, {"new": "y"}]}),
            "there is no argument `new`, there are: old; `edits[1].old` is missing, it must be a string",
        ),
        (
            json!({"path": "a", "edits": [{"old": "x"}, {"old": "y"}, {"old": "z"}]}),
            "`edits` must be a list of at most 2, not a list of 3",
        ),
    ] {
        let end = if problem.ends_with('?') { "" } else { "." };
        assert_eq!(told(&given), Err(format!("Invalid arguments for edit: {problem}{end}")));
    }
    let not_an_object = told(&json!("path"));
    assert_eq!(not_an_object, Err("The arguments of edit must be one JSON object.".to_owned()));
}

#[test]
fn only_so_many_problems_are_told() {
    let given: Map<String, Value> =
        (0..100).map(|index| (format!("key{index}"), Value::Null)).collect();
    let definition = definition::<Arguments>("edit", "Edits.");
    let mut problems = Problems::default();
    problems.object("", &definition.parameters, &given);
    assert_eq!(problems.0.len(), ARGUMENT_PROBLEMS_MAX);
}
