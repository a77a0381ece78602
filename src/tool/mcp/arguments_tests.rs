//! What models are told about arguments of tools that others wrote.

use serde_json::json;

use super::*;

fn told(schema: &Value, given: &Value) -> Result<Value, String> {
    let Value::Object(schema) = schema else { panic!("a schema is an object") };
    fitting("t", schema, given)
}

fn problem(schema: &Value, given: &Value) -> String {
    let told = told(schema, given).unwrap_err();
    told.strip_prefix("Invalid arguments for t: ").unwrap_or(&told).to_owned()
}

/// A schema with one property of this kind.
fn of(property: &Value) -> Value {
    json!({"type": "object", "properties": {"a": property}})
}

#[test]
fn what_fits_is_passed_on_as_it_is() {
    let given = json!({"a": null, "b": 5.0, "_parallel": true});
    assert_eq!(told(&json!({}), &given), Ok(json!({"a": null, "b": 5.0})));
    for (property, value) in [
        (json!({"type": ["string", "null"]}), json!(null)),
        (json!({"type": "integer"}), json!(5.0)),
        (json!({"enum": ["x", 1]}), json!(1.0)),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!(null)),
        (json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}), json!(1)),
        (json!({"pattern": "(?=lookahead)"}), json!("what we cannot look for")),
        (json!({"$ref": "https://example.com/schema"}), json!(1)),
        (json!({"$ref": "#/$defs/none"}), json!(1)),
        (json!({"type": "strange"}), json!(1)),
        (json!({"minimum": "strange", "items": 3, "required": 4}), json!([1])),
        (json!(true), json!(1)),
    ] {
        let given = json!({"a": value});
        assert_eq!(told(&of(&property), &given), Ok(given.clone()), "{property}");
    }
}

#[test]
fn what_does_not_fit_is_named_with_what_would() {
    for (property, value, said) in [
        (json!({"type": "string"}), json!(5), "`a` must be a string, not 5."),
        (json!({"type": ["string", "null"]}), json!(5), "`a` must be a string or null, not 5."),
        (json!({"type": "integer"}), json!(5.5), "`a` must be a whole number, not 5.5."),
        (
            json!({"type": "number", "exclusiveMinimum": 0}),
            json!(0),
            "`a` must be a number above 0, not 0.",
        ),
        (
            json!({"type": "array", "maxItems": 1}),
            json!([1, 2]),
            "`a` must be a list of at most 1, not a list of 2.",
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("x"),
            "`a` must be a string of at least 2 characters, not the string \"x\".",
        ),
        (
            json!({"enum": ["x", "y"]}),
            json!("z"),
            "`a` must be one of \"x\", \"y\", not the string \"z\".",
        ),
        (json!({"const": 5}), json!(6), "`a` must be 5, not 6."),
        (
            json!({"pattern": "^[a-z]+$"}),
            json!("A1"),
            "`a` must match \"^[a-z]+$\", not the string \"A1\".",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!(5),
            "`a` must be a string or null, not 5.",
        ),
        (json!({"items": {"type": "string"}}), json!(["x", 1]), "`a[1]` must be a string, not 1."),
        (
            json!({"prefixItems": [{"type": "string"}]}),
            json!([1]),
            "`a[0]` must be a string, not 1.",
        ),
        (json!({"items": [{"type": "string"}]}), json!([1]), "`a[0]` must be a string, not 1."),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"b": 1}),
            "`a.b` must be a string, not 1.",
        ),
        (json!({"allOf": [{"required": ["b"]}]}), json!({}), "`a.b` is missing."),
        (json!(false), json!(1), "`a` must not be there."),
    ] {
        assert_eq!(problem(&of(&property), &json!({"a": value})), said, "{property}");
    }
    let strict = json!({"properties": {"path": {}}, "additionalProperties": false});
    assert_eq!(
        problem(&strict, &json!({"pat": 1})),
        "there is no argument `pat`, did you mean `path`?"
    );
    assert_eq!(
        told(&strict, &json!([])),
        Err("The arguments of t must be one JSON object.".to_owned())
    );
}

#[test]
fn what_is_missing_may_be_nowhere_else_in_the_schema() {
    assert_eq!(problem(&json!({"required": ["x"]}), &json!({})), "`x` is missing.");
    let schema =
        json!({"properties": {"y": {"type": "string"}, "z": true}, "required": ["x", "y", "z"]});
    let said = "`x` is missing; `y` is missing, it must be a string; `z` is missing.";
    assert_eq!(problem(&schema, &json!({})), said);
}

#[test]
fn references_within_a_schema_are_followed() {
    let schema = json!({
        "properties": {"a": {"$ref": "#/$defs/A"}, "again": {"$ref": "#"}},
        "$defs": {"A": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
    });
    assert_eq!(problem(&schema, &json!({"a": 5})), "`a` must be an object, not 5.");
    assert_eq!(problem(&schema, &json!({"a": {}})), "`a.n` is missing, it must be a whole number.");
    assert_eq!(
        problem(&schema, &json!({"again": {"again": {"a": {"n": "x"}}}})),
        "`again.again.a.n` must be a whole number, not the string \"x\"."
    );
}

#[test]
fn of_several_kinds_the_nearest_is_told() {
    let kind = |name: &str, needs: [&str; 2]| json!({"properties": {"kind": {"const": name}}, "required": needs});
    let schema =
        json!({"oneOf": [kind("circle", ["kind", "radius"]), kind("square", ["kind", "side"])]});
    assert_eq!(
        told(&schema, &json!({"kind": "square", "side": 1})),
        Ok(json!({"kind": "square", "side": 1}))
    );
    assert_eq!(
        problem(&schema, &json!({"kind": "square"})),
        "what is given fits none of the 2 kinds there are (`side` is missing)."
    );
}

#[test]
fn no_schema_is_followed_without_end() {
    let circle = json!({"$ref": "#"});
    assert_eq!(told(&circle, &json!({"a": 1})), Ok(json!({"a": 1})));
    let many =
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "allOf": [{"$ref": "#"}, {"$ref": "#"}]});
    assert_eq!(told(&many, &json!({})), Ok(json!({})));
    let each_other = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    assert_eq!(told(&each_other, &json!({})), Ok(json!({})));
    let long = json!({"a": vec![Value::Null; 100_000]});
    let told = problem(&of(&json!({"items": {"type": "string"}})), &long);
    assert_eq!(told.matches("must be a string").count(), ARGUMENT_PROBLEMS_MAX);
}
