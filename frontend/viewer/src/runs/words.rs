//! Texts of runs.

use super::{Figures, Listed};
use shared::run::RunState;
use shared::unit::{Unit, number};

/// The class of the shape of a state.
pub fn shape(state: RunState) -> &'static str {
    match state {
        RunState::Running | RunState::Suspended | RunState::Finished => "shape is-ok",
        state if state.is_crash() => "shape is-bad",
        _ => "shape is-unknown",
    }
}

/// The state as a word: `out of memory`.
pub fn state_word(state: RunState) -> String {
    state.name().replace('_', " ")
}

/// A sentence with a capital first letter.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Tags as a person edits them: one `name=value` a line.
pub fn written_tags(tags: &[(String, String)]) -> String {
    tags.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\n")
}

/// The tags of such lines.
///
/// # Errors
/// A sentence with the line that has no name.
pub fn read_tags(text: &str) -> Result<Vec<(String, String)>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let tag = |line: &str| {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        match name.trim() {
            "" => Err(format!("The tag {line:?} has no name; write name=value.")),
            name => Ok((name.to_string(), value.trim().to_string())),
        }
    };
    lines.map(tag).collect()
}

/// A number with its unit; a dash for None.
pub fn figure(value: Option<f64>, unit: &str) -> String {
    match value {
        Some(value) if unit.is_empty() => number(value),
        Some(value) => format!("{} {unit}", number(value)),
        None => "–".into(),
    }
}

/// A share, 0 to 1, in percent.
pub fn percent(share: Option<f64>) -> String {
    figure(share.map(|share| (share * 1_000.0).round() / 10.0), "%")
}

/// Energy in a unit that fits it.
pub fn energy(figures: &Figures) -> (String, &'static str) {
    match figures.energy_kwh {
        Some(kwh) if kwh < 1.0 => (number(kwh * 1_000.0), "Wh"),
        Some(kwh) => (number(kwh), "kWh"),
        None => ("–".into(), ""),
    }
}

/// A size in bytes.
pub fn size(bytes: Option<f64>) -> String {
    let Some(bytes) = bytes else { return "–".into() };
    let scale = Unit::Bytes.scale(bytes);
    format!("{} {}", scale.number(bytes), scale.symbol)
}

/// Number of ranks and of machines.
pub fn where_it_ran(run: &Listed) -> String {
    let hosts = match &run.hosts[..] {
        [] => String::new(),
        [one] => format!(" on {one}"),
        [one, other] => format!(" on {one} and {other}"),
        [first, .., last] => format!(" on {} machines, {first} to {last}", run.hosts.len()),
    };
    match run.ranks {
        0 => hosts.trim_start().to_string(),
        1 => format!("1 rank{hosts}"),
        n => format!("{n} ranks{hosts}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_lines_of_a_name_and_a_value() {
        let tags = [("lr", "3e-4"), ("note", "a=b"), ("bare", "")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(written_tags(&tags), "lr=3e-4\nnote=a=b\nbare=");
        assert_eq!(read_tags(" lr = 3e-4\n\nnote=a=b\nbare\n"), Ok(tags.to_vec()));
        let wrong = read_tags("=x").expect_err("it has no name");
        assert!(wrong.contains("has no name"), "{wrong}");
    }
}
