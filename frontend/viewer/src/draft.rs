//! A rule in the editor: the fields of its sentence, its text for the server, and its text in the address of the page.

use shared::alert::{AlertSeverity, Rule};
use shared::catalog::Range;
use shared::unit::{Scale, Unit, fixed, number, time};

/// Minimum clear time in seconds of a rule that sets none.
const LEAST_CLEAR: i64 = 30;

/// A condition on the values of a tag, with the fields of the sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The tag; `*` matches each instance.
    pub tag: String,
    /// For a counter, the seconds over which its rate per second is computed; None for the plain value.
    pub rate: Option<i64>,
    /// True if it fires above the limit, false if below.
    pub above: bool,
    /// The limit, in `unit`.
    pub limit: f64,
    /// Symbol of the unit as written; empty for a plain number.
    pub unit: String,
    /// Hold time, seconds.
    pub hold: i64,
    /// Distance from the limit, on its other side, at which it clears, in `unit`; None: at the limit.
    pub margin: Option<f64>,
}

/// The symbol of a unit in the text of a rule: `C` for degrees, because few keyboards have the sign.
fn plain(symbol: &str) -> &str {
    symbol.trim_start_matches('°')
}

/// Number of base units in one of this symbol; None if the unit has no such symbol.
fn divisor(unit: Unit, symbol: &str) -> Option<f64> {
    if symbol.is_empty() {
        return Some(1.0);
    }
    let all = (-7..16).map(|power| unit.scale(1.01 * 10f64.powi(power)));
    let mut all = all.filter(|scale| plain(scale.symbol) == plain(symbol));
    all.next().map(|scale| scale.divisor)
}

/// A duration in the form of a rule: `90s`, `2m`, `4h`.
pub fn length(seconds: i64) -> String {
    time::typed(seconds * time::SECOND)
}

/// Parses a duration such as `2m`, in seconds.
pub fn seconds(text: &str) -> Option<i64> {
    time::read(text).filter(|ms| ms % time::SECOND == 0).map(|ms| ms / time::SECOND)
}

/// Rounds to digits that distinguish two limits on one scale, without floating-point noise.
fn digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let power = 10f64.powi(2 - value.abs().log10().floor() as i32);
    (value * power).round() / power
}

impl Level {
    /// Parses the text of a rule; None for texts that the sentence has no fields for.
    pub fn read(when: &str) -> Option<Level> {
        let (fires, until) = match when.split_once(", until ") {
            Some((fires, until)) => (fires, Some(until)),
            None => (when, None),
        };
        let (condition, hold) = fires.rsplit_once(" for ")?;
        let (rate, condition) = match condition.strip_prefix("rate(") {
            Some(inner) => {
                let (inner, rest) = inner.split_once(')')?;
                let (tag, over) = inner.split_once(',')?;
                (Some(seconds(over)?), format!("{}{rest}", tag.trim()))
            }
            None => (None, condition.to_string()),
        };
        let (tag, above, limit, unit) = condition_of(&condition)?;
        let margin = match until {
            None => None,
            Some(until) => {
                let (condition, _) = until.rsplit_once(" for ").unwrap_or((until, ""));
                let (_, below, clear, same) = condition_of(&format!("{tag} {condition}"))?;
                let margin = if above { limit - clear } else { clear - limit };
                // Other forms have no field here.
                if below == above || same != unit || margin < 0.0 {
                    return None;
                }
                Some(digits(margin))
            }
        };
        Some(Level { tag, rate, above, limit, unit, hold: seconds(hold)?, margin })
    }

    /// The text of the rule.
    pub fn write(&self) -> String {
        let said = |value: f64| match self.unit.is_empty() {
            true => plainly(value),
            false => format!("{} {}", plainly(value), self.unit),
        };
        let (op, back) = if self.above { (">", "<") } else { ("<", ">") };
        let until = self.margin.map(|margin| {
            let clear = if self.above { self.limit - margin } else { self.limit + margin };
            format!(", until {back} {} for {}", said(digits(clear)), length((self.hold / 5).max(LEAST_CLEAR)))
        });
        let what = match self.rate {
            Some(over) => format!("rate({}, {})", self.tag, length(over)),
            None => self.tag.clone(),
        };
        format!("{what} {op} {} for {}{}", said(self.limit), length(self.hold), until.unwrap_or_default())
    }

    /// The unit of its values, for a tag with this unit.
    pub fn unit_of(&self, unit: Unit) -> Unit {
        if self.rate.is_some() { unit.per_second() } else { unit }
    }

    /// The limit in the base unit of the tag's values; None if the units are of different kinds.
    pub fn base(&self, unit: Unit) -> Option<f64> {
        Some(self.limit * self.divisor(unit)?)
    }

    /// The value at which it clears, in the base unit.
    pub fn clears(&self, unit: Unit) -> Option<f64> {
        let margin = self.margin? * self.divisor(unit)?;
        let base = self.base(unit)?;
        Some(if self.above { base - margin } else { base + margin })
    }

    /// Without a symbol the limit is in the unit of the tag.
    fn divisor(&self, unit: Unit) -> Option<f64> {
        if self.unit.is_empty() { Some(unit.to_base()) } else { divisor(unit, &self.unit) }
    }

    /// Sets the limit from a value in the base unit, in steps that fit the span of the axis. `scale` is that of the
    /// axis. The margin keeps its size.
    pub fn put(&mut self, base: f64, span: f64, scale: Scale) {
        let step = step(span / scale.divisor);
        let shown = digits_at((base / scale.divisor / step).round() * step);
        let unit = plain(scale.symbol);
        if self.unit != unit
            && let Some(margin) = self.margin
        {
            // The unit was written with another prefix.
            let from = Unit::ALL.into_iter().find_map(|of| {
                let now = divisor(of, &self.unit).filter(|_| !self.unit.is_empty())?;
                divisor(of, unit).map(|new| now / new)
            });
            self.margin = Some(digits(margin * from.unwrap_or(1.0)));
        }
        (self.limit, self.unit) = (shown, unit.to_string());
    }

    /// Margins to choose from, in the unit of the limit: round shares of the limit.
    pub fn margins(&self) -> Vec<f64> {
        let base = if self.limit == 0.0 { 1.0 } else { self.limit.abs() };
        let mut all: Vec<f64> = [0.01, 0.03, 0.05, 0.1, 0.2].iter().map(|share| round(base * share)).collect();
        all.extend(self.margin);
        all.sort_unstable_by(f64::total_cmp);
        all.dedup();
        all
    }
}

/// A number without floating-point noise and without a thousands separator, which would end it.
pub fn plainly(value: f64) -> String {
    // The standard library's number formatting would add ten kilobytes to the page.
    let text = fixed(value, 6);
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    short.to_string()
}

/// The smallest round step that divides this span into 100 or more.
fn step(span: f64) -> f64 {
    let rough = (span / 100.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|n| n * power).rfind(|step| *step <= rough * 1.001).unwrap_or(power)
}

fn digits_at(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// The nearest of 1, 2, 3, 5 and their multiples of ten.
fn round(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let near = |a: &f64, b: &f64| (a * power - value).abs().total_cmp(&(b * power - value).abs());
    digits_at([1.0, 2.0, 3.0, 5.0, 10.0].into_iter().min_by(near).unwrap_or(1.0) * power)
}

/// Parses `TAG > NUMBER UNIT`.
fn condition_of(text: &str) -> Option<(String, bool, f64, String)> {
    let mut words = text.split_whitespace();
    let tag = words.next()?;
    let above = match words.next()? {
        ">" => true,
        "<" => false,
        _ => return None,
    };
    let value = words.next()?;
    let split = value.find(|c: char| !(c.is_ascii_digit() || ".-+eE".contains(c))).unwrap_or(value.len());
    let limit = value[..split].parse().ok().filter(|n: &f64| n.is_finite())?;
    let unit = match (&value[split..], words.next()) {
        ("", unit) => unit.unwrap_or(""),
        (unit, None) => unit,
        _ => return None,
    };
    let is_tag = !tag.contains(['(', ')', ',']);
    (words.next().is_none() && is_tag).then(|| (tag.to_string(), above, limit, plain(unit).to_string()))
}

/// Condition of a rule in the editor.
#[derive(Clone, Debug, PartialEq)]
pub enum When {
    /// The sentence with fields.
    Level(Level),
    /// Text of any other form.
    Words(String),
}

impl When {
    /// Parses the text of a rule.
    pub fn read(words: &str) -> When {
        Level::read(words).map_or_else(|| When::Words(words.trim().to_string()), When::Level)
    }

    /// The text of the rule.
    pub fn write(&self) -> String {
        match self {
            When::Level(level) => level.write(),
            When::Words(words) => words.clone(),
        }
    }
}

/// A rule in the editor.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Id of the rule to change; None for a new one.
    pub id: Option<String>,
    /// Version of the rule to change; 0 for a new one.
    pub version: i64,
    /// Condition.
    pub when: When,
    /// Name; empty if none was entered.
    pub name: String,
    /// Severity.
    pub severity: AlertSeverity,
    /// Labels that must match, as in [`Rule::on`].
    pub on: Vec<(String, String)>,
    /// Names of channels; None for the team's default channels.
    pub to: Option<Vec<String>>,
    /// Note on how to handle the alert.
    pub note: String,
}

impl Draft {
    /// A draft with this condition.
    pub fn parse(when: &str) -> Draft {
        Draft {
            id: None,
            version: 0,
            when: When::read(when),
            name: String::new(),
            severity: AlertSeverity::Warning,
            on: Vec::new(),
            to: None,
            note: String::new(),
        }
    }

    /// The text in the address: the condition, then the other values that differ from the default, as `~name=Hot`.
    pub fn write(&self) -> String {
        let mut parts = vec![self.when.write()];
        let mut put = |name: &str, value: &str| parts.push(format!("{name}={value}"));
        self.id.iter().for_each(|id| put("id", id));
        if self.version != 0 {
            put("version", &self.version.to_string());
        }
        if !self.name.is_empty() {
            put("name", &self.name);
        }
        if self.severity != AlertSeverity::Warning {
            put("severity", self.severity.as_str());
        }
        self.on.iter().for_each(|(name, value)| put(&format!("on.{name}"), value));
        if let Some(to) = &self.to {
            put("to", &to.join(","));
        }
        if !self.note.is_empty() {
            put("note", &self.note);
        }
        parts.iter().map(|part| part.replace('~', "~-")).collect::<Vec<_>>().join("~.")
    }

    /// Parses the text in an address; unknown parts are ignored.
    pub fn read(text: &str) -> Draft {
        let mut parts = text.split("~.").map(|part| part.replace("~-", "~"));
        let mut draft = Draft::parse(&parts.next().unwrap_or_default());
        for part in parts {
            let Some((name, value)) = part.split_once('=') else { continue };
            match name {
                "id" => draft.id = Some(value.to_string()),
                "version" => draft.version = value.parse().unwrap_or(0),
                "name" => draft.name = value.to_string(),
                "severity" => draft.severity = severity(value).unwrap_or_default(),
                "to" => draft.to = Some(value.split(',').filter(|n| !n.is_empty()).map(String::from).collect()),
                "note" => draft.note = value.to_string(),
                _ => draft.on.extend(name.strip_prefix("on.").map(|name| (name.to_string(), value.to_string()))),
            }
        }
        draft
    }

    /// A draft that changes a rule.
    pub fn from_rule(rule: &Rule) -> Draft {
        Draft {
            id: Some(rule.id.clone()).filter(|id| !id.is_empty()),
            version: rule.version,
            when: When::read(&rule.when),
            name: rule.name.clone(),
            severity: rule.severity,
            on: rule.on.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            to: rule.to.clone(),
            note: rule.note.clone().unwrap_or_default(),
        }
    }

    /// Its name, or a generated one; `title` is the title of the metric, if known.
    pub fn named(&self, title: &str) -> String {
        match (&self.when, title) {
            _ if !self.name.trim().is_empty() => self.name.trim().to_string(),
            (When::Words(words), _) => words.chars().take(60).collect(),
            (When::Level(level), title) => {
                let what = if title.is_empty() { &level.tag } else { title };
                let unit = if level.unit == "C" { "°C" } else { &level.unit };
                let side = if level.above { "above" } else { "below" };
                format!("{what} {side} {} {unit}", number(level.limit)).trim_end().to_string()
            }
        }
    }

    /// The required value of a label; empty if every value matches.
    pub fn fact(&self, name: &str) -> &str {
        self.on.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Sets the required value of a label; an empty one removes it.
    pub fn set_fact(&mut self, name: &str, value: &str) {
        self.on.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.on.push((name.to_string(), value.to_string()));
        }
    }
}

/// The severity with this name.
pub fn severity(word: &str) -> Option<AlertSeverity> {
    [AlertSeverity::Info, AlertSeverity::Warning, AlertSeverity::Critical].into_iter().find(|one| one.as_str() == word)
}

/// Initial limit of a rule over a chart, in the metric's unit: somewhat above the highest of the newest values, and
/// within the metric's range, because a limit at its end is never exceeded.
pub fn first_limit(highest: f64, range: Range) -> f64 {
    /// As a multiple of the highest value.
    const ABOVE: f64 = 1.1;
    /// As a share of the end of the range.
    const SHARE_OF_END: f64 = 0.9;
    match (highest > 0.0, range) {
        (true, Range::Fixed(_, end)) => (highest * ABOVE).min(end * SHARE_OF_END),
        (true, _) => highest * ABOVE,
        (false, _) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(when: &str) -> Level {
        Level::read(when).expect("a level")
    }

    #[test]
    fn the_words_of_a_level_come_back_from_its_fields() {
        for when in [
            "gpu.*.temp > 85 C for 2m, until < 82 C for 30s",
            "gpu.*.gpu < 50 % for 10m, until > 70 % for 2m",
            "memory_percent > 97 for 90s",
            "network.eth0.recv > 1.5 GB/s for 0s",
            "rate(network.*.recv, 1m) > 1.5 GB/s for 2m, until < 1.4 GB/s for 30s",
        ] {
            assert_eq!(level(when).write(), when);
            assert_eq!(When::read(when).write(), when);
        }
        assert_eq!(level("gpu.*.temp > 85C for 2m").write(), "gpu.*.temp > 85 C for 2m", "the blank may be missing");
        assert_eq!(level("gpu.*.temp > 85 °C for 2m").unit, "C");
    }

    #[test]
    fn what_the_sentence_has_no_field_for_stays_words() {
        for when in [
            "run crashed",
            "mean(gpu.*.gpu, 5m) < 50 for 10m",
            "mean over run of gpu.*.gpu < 50 for 10m",
            "gpu.*.temp >= 85 for 2m",
            "gpu.*.temp > 85 for ever",
            "gpu.*.temp > 85 C for 2m, until < 0.9 kC for 30s",
            "gpu.*.temp > 85 C for 2m, until < 90 C for 30s",
            "disk.*.usagePercent reaches 100 within 8h",
            "",
        ] {
            assert_eq!(When::read(when), When::Words(when.to_string()), "{when}");
        }
    }

    #[test]
    fn limits_are_read_in_the_base_unit() {
        let hot = level("gpu.*.temp > 85 C for 2m, until < 82 C for 30s");
        assert_eq!((hot.base(Unit::Celsius), hot.clears(Unit::Celsius)), (Some(85.0), Some(82.0)));
        assert_eq!(level("x > 1.5 GB/s for 1m").base(Unit::BytesPerSecond), Some(1.5e9));
        assert_eq!(level("x < 2 GiB for 1m").base(Unit::Mebibytes), Some(2.0 * 1_073_741_824.0));
        assert_eq!(level("x < 2 for 1m").base(Unit::Mebibytes), Some(2.0 * 1_048_576.0), "in the unit of its tag");
        assert_eq!(level("x < 2 W for 1m").base(Unit::Celsius), None, "of another kind");
        assert_eq!(level("x < 20 for 1m, until > 25 for 30s").clears(Unit::Percent), Some(25.0));
    }

    #[test]
    fn a_line_that_is_dragged_stands_at_round_values_in_the_unit_of_the_axis() {
        let mut hot = level("gpu.*.temp > 85 C for 2m, until < 82 C for 30s");
        hot.put(79.8123, 60.0, Unit::Celsius.scale(90.0));
        assert_eq!(hot.write(), "gpu.*.temp > 80 C for 2m, until < 77 C for 30s");
        let mut used = level("x > 900 MiB for 2m, until < 800 MiB for 30s");
        used.put(1.26 * 1_073_741_824.0, 4.0 * 1_073_741_824.0, Unit::Bytes.scale(4.0 * 1_073_741_824.0));
        assert_eq!((used.limit, used.unit.as_str(), used.margin), (1.26, "GiB", Some(0.0977)));
    }

    #[test]
    fn margins_are_round_and_have_the_present_one() {
        assert_eq!(level("x > 85 C for 2m").margins(), [1.0, 3.0, 5.0, 10.0, 20.0]);
        assert_eq!(level("x > 85 C for 2m, until < 81 C for 30s").margins(), [1.0, 3.0, 4.0, 5.0, 10.0, 20.0]);
    }

    #[test]
    fn a_draft_comes_back_from_its_address() {
        let mut draft = Draft::parse("gpu.*.temp > 85 C for 2m");
        assert_eq!(draft.write(), "gpu.*.temp > 85 C for 2m");
        draft.id = Some("01J".into());
        draft.version = 3;
        draft.name = "hot ~. one=two~".into();
        draft.severity = AlertSeverity::Critical;
        draft.set_fact("project", "llm");
        draft.set_fact("source", "node-*");
        draft.set_fact("project", "");
        draft.to = Some(vec!["lab".into(), "ops".into()]);
        draft.note = "fan?".into();
        assert_eq!(Draft::read(&draft.write()), draft);
        draft.to = Some(Vec::new());
        assert_eq!(Draft::read(&draft.write()).to, Some(Vec::new()), "nobody is not everybody");
        assert_eq!((draft.fact("source"), draft.fact("project")), ("node-*", ""));
    }

    #[test]
    fn a_rule_without_a_name_is_called_by_what_it_says() {
        let mut draft = Draft::parse("gpu.*.temp > 85 C for 2m");
        assert_eq!(draft.named("GPU temperature"), "GPU temperature above 85 °C");
        assert_eq!(draft.named(""), "gpu.*.temp above 85 °C");
        draft.name = " Hot ".into();
        assert_eq!(draft.named("GPU temperature"), "Hot");
        assert_eq!(Draft::parse("run crashed").named(""), "run crashed");
    }

    #[test]
    fn lengths_are_read_as_they_are_written() {
        for (text, of) in [("0s", 0), ("90s", 90), ("2m", 120), ("4h", 14_400), ("7d", 604_800)] {
            assert_eq!((seconds(text), length(of)), (Some(of), text.to_string()));
        }
        assert_eq!(
            (seconds("2"), seconds("x"), seconds("-1s"), seconds("9999999999999999d")),
            (None, None, None, None)
        );
    }

    #[test]
    fn the_first_limit_of_a_rule_can_be_exceeded() {
        let percent = |highest: f64| first_limit(highest, Range::PERCENT);
        assert!((percent(40.0) - 44.0).abs() < 1e-9);
        assert_eq!((percent(100.0), percent(99.0), percent(0.0)), (90.0, 90.0, 1.0));
        assert!((first_limit(1_000.0, Range::FromZero) - 1_100.0).abs() < 1e-9);
    }
}
