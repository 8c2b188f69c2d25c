//! Whether JSON is as a JSON schema says: the part of the language that the schemas here are written in. What isn't known of it is an
//! error, so that nothing is passed over.

use serde_json::Value;

/// Keywords that say nothing about what is allowed, or what isn't checked here: forms of texts.
const ANNOTATIONS: &[&str] = &[
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "definitions",
    "description",
    "format",
    "pattern",
    "title",
];

/// What is wrong, with the place; empty when all is as the schema says.
pub fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "$", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let keywords = match schema {
        Value::Bool(true) => return,
        Value::Object(keywords) => keywords,
        _ => return found.push(format!("{at}: nothing is allowed")),
    };
    let fits = |schema: &Value| {
        let mut found = Vec::new();
        check(root, schema, value, at, &mut found);
        found.is_empty()
    };
    let list = |said: &Value| said.as_array().cloned().unwrap_or_default();
    let size = |said: &Value| said.as_u64().unwrap_or_default() as usize;
    for (keyword, said) in keywords {
        let right = match keyword.as_str() {
            "$ref" => {
                let target = said
                    .as_str()
                    .and_then(|target| root.pointer(target.trim_start_matches('#')));
                match target {
                    Some(target) => check(root, target, value, at, found),
                    None => found.push(format!("the schema refers to {said}, which isn't there")),
                }
                true
            }
            "type" => match said {
                Value::Array(types) => types.iter().any(|one| is(value, one)),
                one => is(value, one),
            },
            "enum" => list(said).contains(value),
            "const" => said == value,
            "anyOf" => list(said).iter().any(fits),
            "oneOf" => list(said).iter().filter(|one| fits(one)).count() == 1,
            "allOf" => list(said).iter().all(fits),
            "minimum" => value.as_f64().is_none_or(|number| Some(number) >= said.as_f64()),
            "maximum" => value.as_f64().is_none_or(|number| Some(number) <= said.as_f64()),
            "minItems" => value.as_array().is_none_or(|items| items.len() >= size(said)),
            "maxItems" => value.as_array().is_none_or(|items| items.len() <= size(said)),
            "uniqueItems" => value
                .as_array()
                .is_none_or(|items| (1..items.len()).all(|index| !items[..index].contains(&items[index]))),
            "required" => {
                let missing =
                    |name: &&Value| value.is_object() && value.get(name.as_str().unwrap_or_default()).is_none();
                list(said).iter().find(missing).is_none_or(|name| {
                    found.push(format!("{at}: {name} is missing"));
                    true
                })
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, said, item, &format!("{at}[{index}]"), found);
                }
                true
            }
            "prefixItems" => {
                for (index, (one, item)) in list(said)
                    .iter()
                    .zip(value.as_array().into_iter().flatten())
                    .enumerate()
                {
                    check(root, one, item, &format!("{at}[{index}]"), found);
                }
                true
            }
            "properties" => {
                for (name, property) in said.as_object().into_iter().flatten() {
                    if let Some(value) = value.get(name) {
                        check(root, property, value, &format!("{at}.{name}"), found);
                    }
                }
                true
            }
            "additionalProperties" => {
                let named = keywords.get("properties").and_then(Value::as_object);
                for (name, value) in value.as_object().into_iter().flatten() {
                    if named.is_none_or(|named| !named.contains_key(name)) {
                        check(root, said, value, &format!("{at}.{name}"), found);
                    }
                }
                true
            }
            other if ANNOTATIONS.contains(&other) => true,
            other => {
                found.push(format!("{at}: the schema says `{other}`, which isn't known here"));
                true
            }
        };
        if !right {
            found.push(format!("{at}: {keyword} is {said}, but there is {value}"));
        }
    }
}

fn is(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::problems;
    use serde_json::json;

    #[test]
    fn what_fits_and_what_does_not() {
        let schema = json!({
            "definitions": { "level": { "enum": ["low", "high"] } },
            "type": "object",
            "required": ["a"],
            "additionalProperties": false,
            "properties": {
                "a": { "type": ["integer", "null"], "minimum": 1 },
                "p": { "prefixItems": [{ "const": 1 }, { "type": "string" }] },
                "b": { "type": "array", "minItems": 1, "uniqueItems": true, "items": { "$ref": "#/definitions/level" } },
                "c": { "anyOf": [{ "type": "null" }, { "const": 3 }] },
            }
        });
        for right in [
            json!({ "a": 1 }),
            json!({ "a": null, "b": ["low"], "c": 3, "p": [1, "x"] }),
        ] {
            assert_eq!(problems(&schema, &right), [""; 0], "{right}");
        }
        for wrong in [
            json!([]),
            json!({}),
            json!({ "a": 0 }),
            json!({ "a": "x" }),
            json!({ "a": 1, "b": [] }),
            json!({ "a": 1, "b": ["low", "low"] }),
            json!({ "a": 1, "b": ["middle"] }),
            json!({ "a": 1, "c": 4 }),
            json!({ "a": 1, "d": 1 }),
            json!({ "a": 1, "p": [1, 2] }),
        ] {
            assert!(!problems(&schema, &wrong).is_empty(), "{wrong}");
        }
        assert!(!problems(&json!({ "not": {} }), &json!(1)).is_empty());
    }
}
