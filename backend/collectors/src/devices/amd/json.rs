//! Numbers in the JSON of AMD's tools. They are printed as text, as numbers, as `{"value", "unit"}` or as `N/A`.

use serde_json::Value;

/// The JSON document in the output of a tool. Warnings may precede it, on lines of their own.
pub(super) fn document(text: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with(['{', '['])
            && let Some(Ok(value)) = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next()
        {
            // A warning like `[WARN]` is no document, and neither is a `[1]` in one.
            return Some(value).filter(|value| value.is_object() || value.get(0).is_some_and(Value::is_object));
        }
        at += line.len();
    }
    None
}

/// A plain number; none for anything else, such as `N/A (Secondary die)`.
pub(super) fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite())
}

/// A number with its unit, multiplied by that unit's factor; none for a unit that is not in `units`.
pub(super) fn with_unit(value: &Value, units: &[(&str, f64)]) -> Option<f64> {
    let unit = value.get("unit")?.as_str()?;
    let &(_, factor) = units.iter().find(|(known, _)| *known == unit)?;
    Some(number(value.get("value")?)? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_is_found_behind_warnings_and_only_whole() {
        let text = b"WARNING: a card sleeps\n[WARN] this too\n\n{\"card0\": {\"a\": \"1\"}}\nbye\n";
        assert_eq!(document(text), Some(json!({"card0": {"a": "1"}})));
        let end = text.len() - "\nbye\n".len();
        assert!((0..end).all(|n| document(&text[..n]).is_none()), "cut at every byte");
        assert_eq!(document(b"[1]\n"), None);
        assert_eq!(document(b"[\n  {\"gpu\": 0}\n]"), Some(json!([{"gpu": 0}])));
    }

    #[test]
    fn numbers_come_in_several_shapes() {
        for (value, wanted) in [
            (json!("36.0"), Some(36.0)),
            (json!(36), Some(36.0)),
            (json!("N/A"), None),
            (json!("N/A (Secondary die)"), None),
            (json!(""), None),
            (json!("inf"), None),
            (json!(["1"]), None),
        ] {
            assert_eq!(number(&value), wanted, "{value}");
        }
        const MEMORY: &[(&str, f64)] = &[("B", 1.0), ("MB", 1024.0 * 1024.0)];
        assert_eq!(with_unit(&json!({"value": 2, "unit": "MB"}), MEMORY), Some(2_097_152.0));
        assert_eq!(with_unit(&json!({"value": "N/A", "unit": "MB"}), MEMORY), None);
        assert_eq!(with_unit(&json!({"value": 2, "unit": "furlong"}), MEMORY), None);
        assert_eq!(with_unit(&json!("N/A"), MEMORY), None);
    }
}
