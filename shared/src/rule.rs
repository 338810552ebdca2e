//! Conditions of rules: the grammar of `when`, its meaning, and its text for people.
//!
//! [`parse`] reads a text to a [`Condition`]. Its `Display` writes the text again in one spelling, and
//! [`Condition::words`] describes it to people. [`check`] validates a whole rule. The page, the API, the configuration
//! and the command line read the same.

mod parse;
mod text;

pub use parse::parse;
pub use text::{
    MAX_VALUE_BYTES, PLACEHOLDERS, check, clean, duration, duration_text, duration_words, fill, number_text,
    placeholders,
};

use crate::catalog::{self, Kind};
use crate::run::RunState;
use crate::unit::{Unit, number, quantity};
use std::fmt;

/// Maximum duration, seconds: 7 days.
pub const MAX_DURATION: u32 = 7 * 86_400;

/// Maximum length of a condition's text, bytes.
pub const MAX_WHEN_BYTES: usize = 1_000;

/// A condition without `until` must be false for this part of the time for which it had to hold.
const CLEAR_PART: u32 = 5;

/// Minimum of that time, seconds.
const CLEAR_LEAST: u32 = 30;

/// Reason why a text is no condition, and the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Index of the letter in the text, from 0.
    pub at: usize,
    /// The problem, and the correct form.
    pub sentence: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at letter {} of `when`: {}", self.at + 1, self.sentence)
    }
}
impl std::error::Error for Fault {}

/// Comparison of a value with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `==`
    Is,
    /// `!=`
    IsNot,
}

impl Op {
    /// All of them; those of two signs first, so that a reader finds them.
    pub const ALL: [Op; 6] = [Op::AtLeast, Op::AtMost, Op::Is, Op::IsNot, Op::Above, Op::Below];

    /// Its sign in the text.
    pub const fn sign(self) -> &'static str {
        match self {
            Op::Above => ">",
            Op::AtLeast => ">=",
            Op::Below => "<",
            Op::AtMost => "<=",
            Op::Is => "==",
            Op::IsNot => "!=",
        }
    }

    /// Its words before a number.
    pub const fn words(self) -> &'static str {
        match self {
            Op::Above => "above",
            Op::AtLeast => "at least",
            Op::Below => "below",
            Op::AtMost => "at most",
            Op::Is => "equal to",
            Op::IsNot => "other than",
        }
    }

    /// Whether the comparison holds for the value.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Op::Above => value > limit,
            Op::AtLeast => value >= limit,
            Op::Below => value < limit,
            Op::AtMost => value <= limit,
            Op::Is => value == limit,
            Op::IsNot => value != limit,
        }
    }

    /// Whether `a` is further than `b` on the side of the warning.
    pub fn is_worse(self, a: f64, b: f64) -> bool {
        match self {
            Op::Above | Op::AtLeast | Op::IsNot | Op::Is => a > b,
            Op::Below | Op::AtMost => a < b,
        }
    }
}

/// Function of the samples of one series over a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// Increase of a counter in a second.
    Rate,
    /// Arithmetic mean.
    Mean,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Increase of a counter.
    Increase,
    /// The newest value less the oldest.
    Change,
}

impl Function {
    /// All of them.
    pub const ALL: [Function; 6] =
        [Function::Rate, Function::Mean, Function::Min, Function::Max, Function::Increase, Function::Change];

    /// Its name in the text.
    pub const fn name(self) -> &'static str {
        match self {
            Function::Rate => "rate",
            Function::Mean => "mean",
            Function::Min => "min",
            Function::Max => "max",
            Function::Increase => "increase",
            Function::Change => "change",
        }
    }
}

/// Function of the newest values of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Across {
    /// Arithmetic mean.
    Mean,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Largest less smallest.
    Spread,
    /// Percent of the members for which this comparison holds.
    Share(Op, f64),
}

/// Key of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// All series of a machine.
    Source,
    /// All series of the GPUs of a run; if it has none, of its machines.
    Run,
    /// All series of a GPU.
    Gpu,
}

impl By {
    /// All of them.
    pub const ALL: [By; 3] = [By::Source, By::Run, By::Gpu];

    /// Its name in the text.
    pub const fn name(self) -> &'static str {
        match self {
            By::Source => "source",
            By::Run => "run",
            By::Gpu => "gpu",
        }
    }
}

/// Templates of rows that are created at run time. A rule names a series of one by its whole tag, whether or not its
/// row exists now.
pub(crate) static OPEN: [&catalog::MetricDef; 2] = [&catalog::openmetrics::SAMPLE, &catalog::job::VALUE];

/// Series of one row of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The row's tag with its placeholder, as `gpu.{i}.temp`.
    pub template: String,
    /// Pattern of the instances, for [`catalog::glob`]; empty if there is no placeholder.
    pub instance: String,
    /// Unit of its samples.
    pub unit: Unit,
    /// Gauge, counter or state.
    pub kind: Kind,
    /// The row's title, as `GPU temperature`.
    pub title: String,
}

impl Tag {
    /// The tag with its pattern, as `gpu.*.temp`.
    pub fn text(&self) -> String {
        catalog::fill(&self.template, &self.instance)
    }

    /// Whether it matches that series, given by the row's tag with its placeholder, and the instance.
    pub fn fits(&self, template: &str, instance: &str) -> bool {
        if self.is_open() {
            let (tag, pattern) = (catalog::fill(template, instance), self.text());
            return catalog::glob(&pattern, &tag)
                || tag.strip_prefix(pattern.as_str()).is_some_and(|rest| rest.starts_with('{'));
        }
        self.template == template && catalog::glob(&self.instance, instance)
    }

    /// Whether its rows are created at run time, from the samples of endpoints and the values of jobs.
    pub(crate) fn is_open(&self) -> bool {
        OPEN.iter().any(|row| row.tag == self.template)
    }

    /// Whether it matches more than one series of a machine.
    pub fn is_pattern(&self) -> bool {
        self.instance.contains('*') || self.is_open()
    }
}

/// A number that is watched.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The newest sample.
    Of(Tag),
    /// A function of the samples of this many seconds.
    In(Function, Tag, u32),
    /// The newest sample, divided by the mean of the samples of this many seconds.
    OfMean(Tag, u32),
    /// A function of a group.
    Over(Across, By, Tag),
}

impl Value {
    /// Its series.
    pub fn tag(&self) -> &Tag {
        match self {
            Value::Of(tag) | Value::In(_, tag, _) | Value::OfMean(tag, _) | Value::Over(_, _, tag) => tag,
        }
    }

    /// Its description, such as `mean GPU utilization of a run`.
    pub fn words(&self) -> String {
        match self {
            Value::Of(tag) => said_tag(tag),
            Value::In(function, tag, over) => {
                let over = duration_words(*over);
                let tag = said_tag(tag);
                match function {
                    Function::Rate => format!("rate of {tag} over {over}"),
                    Function::Mean => format!("mean of {tag} over {over}"),
                    Function::Min => format!("lowest {tag} in {over}"),
                    Function::Max => format!("highest {tag} in {over}"),
                    Function::Increase => format!("increase of {tag} in {over}"),
                    Function::Change => format!("change of {tag} in {over}"),
                }
            }
            Value::OfMean(tag, over) => {
                format!("{} relative to its mean over {}", said_tag(tag), duration_words(*over))
            }
            Value::Over(over, by, tag) => {
                let by = match by {
                    By::Gpu => "GPU",
                    by => by.name(),
                };
                let unit = tag.unit;
                let tag = said_tag(tag);
                match over {
                    Across::Mean => format!("mean {tag} of a {by}"),
                    Across::Min => format!("lowest {tag} of a {by}"),
                    Across::Max => format!("highest {tag} of a {by}"),
                    Across::Spread => format!("spread of {tag} in a {by}"),
                    Across::Share(op, limit) => {
                        format!("share of a {by} with {tag} {} {}", op.words(), limit_words(*limit, unit))
                    }
                }
            }
        }
    }

    /// Unit of the comparison.
    pub fn unit(&self) -> Unit {
        match self {
            Value::In(Function::Rate, tag, _) => tag.unit.per_second(),
            Value::Over(Across::Share(..), ..) => Unit::Percent,
            Value::OfMean(..) => Unit::Count,
            value => value.tag().unit,
        }
    }

    /// Factor from a value in the tag's unit to one in [`unit`](Self::unit).
    pub fn factor(&self) -> f64 {
        match self {
            Value::In(Function::Rate, tag, _) => tag.unit.to_base(),
            _ => 1.0,
        }
    }
}

/// A value and its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    #[allow(missing_docs, reason = "see Value")]
    pub value: Value,
    #[allow(missing_docs, reason = "see Op")]
    pub op: Op,
    /// The limit, in [`Value::unit`].
    pub limit: f64,
}

impl Comparison {
    /// Whether it holds for that value.
    pub fn holds(&self, value: f64) -> bool {
        self.op.holds(value, self.limit)
    }
}

/// Condition for the end of an alert.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    #[allow(missing_docs, reason = "see Op")]
    pub op: Op,
    /// The limit, in the unit of the comparison.
    pub limit: f64,
    /// Time for which it must hold, seconds.
    pub hold: u32,
}

/// Values against their limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The comparison.
    pub first: Comparison,
    /// A further comparison of the same subject that must hold as well.
    pub and: Option<Comparison>,
    /// Time for which it must hold, seconds; 0: at once.
    pub hold: u32,
    /// Hysteresis of the first comparison; None: the opposite.
    pub until: Option<Until>,
}

impl Threshold {
    /// Time for which it must be false, seconds.
    pub fn clear(&self) -> u32 {
        self.until.map_or((self.hold / CLEAR_PART).max(CLEAR_LEAST), |until| until.hold)
    }

    /// Whether these values allow the alert to end.
    pub fn clears(&self, first: f64, and: Option<f64>) -> bool {
        match (&self.until, &self.and) {
            (Some(until), _) => until.op.holds(first, until.limit),
            (None, Some(second)) => !self.first.holds(first) || and.is_some_and(|value| !second.holds(value)),
            (None, None) => !self.first.holds(first),
        }
    }
}

/// Condition of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `TAG OP NUMBER for DUR`, with functions, groups, `and`, `until`.
    Threshold(Threshold),
    /// `TAG missing for DUR`: its samples stopped, although its machine still reports.
    Missing {
        #[allow(missing_docs, reason = "see Tag")]
        tag: Tag,
        /// Seconds.
        hold: u32,
    },
    /// `TAG is not a number for DUR`: a job logs NaN or an infinity as that value.
    NotANumber {
        #[allow(missing_docs, reason = "see Tag")]
        tag: Tag,
        /// Seconds; 0: at once.
        hold: u32,
    },
    /// `TAG reaches NUMBER within DUR`.
    Reaches {
        #[allow(missing_docs, reason = "see Tag")]
        tag: Tag,
        /// In the tag's unit.
        limit: f64,
        /// Seconds.
        within: u32,
    },
    /// `TAG increases`.
    Increases {
        #[allow(missing_docs, reason = "see Tag")]
        tag: Tag,
    },
    /// `source lost for DUR`, seconds.
    SourceLost(u32),
    /// `source joined`.
    SourceJoined,
    /// `run STATE, STATE`, ascending.
    Run(Vec<RunState>),
    /// `run longer than DUR`, seconds.
    RunLonger(u32),
    /// `run without marker for DUR`, seconds.
    RunSilent(u32),
    /// `run idle for DUR`, seconds.
    RunIdle(u32),
    /// `gpus held idle for DUR`, seconds.
    HeldIdle(u32),
    /// `finding WHAT, WHAT for DUR`.
    Finding {
        /// Kinds, rules and severities, or `*`; those with `!` are excluded.
        what: Vec<String>,
        /// Still open this many seconds after its onset.
        hold: u32,
    },
    /// `xid NUMBER, NUMBER`, ascending; empty: `xid *`.
    Xid(Vec<u32>),
    /// `collector failed for DUR`, seconds.
    CollectorFailed(u32),
    /// `hub behind`.
    HubBehind,
    /// `history failed`: history cannot be written.
    HistoryFailed,
    /// `gpu hours above 85 %`: percent of the team's limit for a month.
    GpuHours(u32),
    /// `alert from code`: a program sends it.
    FromCode,
}

/// The class of a rule, by which one alert can inhibit another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nature {
    /// Values against limits, and all conditions without a class of their own.
    Values,
    /// Something is missing.
    Missing,
    /// Something is idle.
    Idle,
    /// A machine is lost.
    SourceLost,
    /// A state of a run.
    Run,
    /// A finding.
    Finding,
    /// The driver's own error number.
    Xid,
    /// From code.
    Code,
}

impl Condition {
    #[allow(missing_docs, reason = "see Nature")]
    pub fn nature(&self) -> Nature {
        match self {
            Condition::Missing { .. } => Nature::Missing,
            Condition::RunIdle(_) | Condition::HeldIdle(_) => Nature::Idle,
            Condition::SourceLost(_) => Nature::SourceLost,
            Condition::Run(_) => Nature::Run,
            Condition::Finding { what, .. } if what.iter().all(|w| w == "idle" || w == "unused") => Nature::Idle,
            Condition::Finding { .. } => Nature::Finding,
            Condition::Xid(_) => Nature::Xid,
            Condition::FromCode => Nature::Code,
            _ => Nature::Values,
        }
    }

    /// Whether it is an instant without a duration.
    pub fn is_event(&self) -> bool {
        match self {
            Condition::Run(states) => !states.iter().any(|s| matches!(s, RunState::Unreachable | RunState::Suspended)),
            Condition::SourceJoined | Condition::Xid(_) | Condition::Increases { .. } | Condition::FromCode => true,
            _ => false,
        }
    }

    /// The tags that it names.
    pub fn tags(&self) -> Vec<&Tag> {
        match self {
            Condition::Threshold(t) => {
                std::iter::once(t.first.value.tag()).chain(t.and.as_ref().map(|c| c.value.tag())).collect()
            }
            Condition::Missing { tag, .. }
            | Condition::NotANumber { tag, .. }
            | Condition::Reaches { tag, .. }
            | Condition::Increases { tag } => vec![tag],
            _ => Vec::new(),
        }
    }

    /// Its description, such as `GPU temperature above 85 °C for 2 min, until below 82 °C`.
    pub fn words(&self) -> String {
        let held = |what: &str, seconds: u32| match seconds {
            0 => what.to_string(),
            _ => format!("{what} for {}", duration_words(seconds)),
        };
        match self {
            Condition::Threshold(t) => {
                let unit = t.first.value.unit();
                let mut text = said_comparison(&t.first);
                if let Some(second) = &t.and {
                    text += &format!(" and {}", said_comparison(second));
                }
                text = held(&text, t.hold);
                if let Some(until) = &t.until {
                    text +=
                        &held(&format!(", until {} {}", until.op.words(), limit_words(until.limit, unit)), until.hold);
                }
                text
            }
            Condition::Missing { tag, hold } => held(&format!("{} missing", said_tag(tag)), *hold),
            Condition::NotANumber { tag, hold } => held(&format!("{} not a number", said_tag(tag)), *hold),
            Condition::Reaches { tag, limit, within } => {
                format!(
                    "{} reaches {} within {}",
                    said_tag(tag),
                    limit_words(*limit, tag.unit),
                    duration_words(*within)
                )
            }
            Condition::Increases { tag } => format!("{} increases", said_tag(tag)),
            Condition::SourceLost(hold) => held("machine not reporting", *hold),
            Condition::SourceJoined => "a machine joins".into(),
            Condition::Run(states) => format!("run {}", states_text(states).replace('_', " ")),
            Condition::RunLonger(than) => format!("run longer than {}", duration_words(*than)),
            Condition::RunSilent(hold) => held("run without marker", *hold),
            Condition::RunIdle(hold) => held("GPUs of a run under 5 % busy", *hold),
            Condition::HeldIdle(hold) => held("GPU with memory held and under 5 % busy", *hold),
            Condition::Finding { what, hold } => {
                let what = if what.iter().any(|w| w == "*") {
                    "any finding".into()
                } else {
                    format!("finding {}", what.join(", "))
                };
                match hold {
                    0 => what,
                    _ => format!("{what}, still open after {}", duration_words(*hold)),
                }
            }
            Condition::Xid(numbers) if numbers.is_empty() => "any XID error".into(),
            Condition::Xid(numbers) => format!("XID error {}", listed(numbers)),
            Condition::CollectorFailed(hold) => held("collector failed", *hold),
            Condition::HubBehind => "hub behind".into(),
            Condition::HistoryFailed => "history cannot be written".into(),
            Condition::GpuHours(percent) => format!("GPU-hours of the month at {percent} % of the limit"),
            Condition::FromCode => "alert from code".into(),
        }
    }
}

fn said_tag(tag: &Tag) -> String {
    match tag.instance.as_str() {
        "" | "*" if !tag.is_open() && !tag.title.is_empty() => tag.title.clone(),
        _ if tag.is_open() || tag.title.is_empty() => tag.text(),
        _ => format!("{} ({})", tag.title, tag.text()),
    }
}

fn said_comparison(c: &Comparison) -> String {
    format!("{} {} {}", c.value.words(), c.op.words(), limit_words(c.limit, c.value.unit()))
}

/// A limit as people read it: `85 °C`, `2 GiB`, `97.25 %`.
pub fn limit_words(limit: f64, unit: Unit) -> String {
    let base = limit * unit.to_base();
    let scale = unit.scale(base);
    let exact = number_text(base / scale.divisor);
    // More digits than these are noise of a conversion.
    match exact.len() <= 8 && exact.parse::<f64>().is_ok_and(|value| value.abs() < 10_000.0) {
        true => with_symbol(&exact, scale.symbol),
        false => value_words(limit, unit),
    }
}

/// A value as people read it, with three digits: `89.1 °C`.
pub fn value_words(value: f64, unit: Unit) -> String {
    if unit.base() == Unit::Count {
        return number(value);
    }
    let (number, symbol) = quantity(value, unit);
    with_symbol(&number, symbol)
}

fn with_symbol(number: &str, symbol: &str) -> String {
    match symbol {
        "" => number.to_string(),
        "k" | "M" | "G" => format!("{number}{symbol}"),
        _ => format!("{number} {symbol}"),
    }
}

fn listed<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn states_text(states: &[RunState]) -> String {
    let all = RunState::CRASHED.iter().all(|state| states.contains(state));
    let mut names: Vec<&str> = if all { vec!["crashed"] } else { Vec::new() };
    names.extend(states.iter().filter(|s| !(all && RunState::CRASHED.contains(s))).map(|s| s.name()));
    names.join(", ")
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        match parse::is_plain(&text) {
            true => f.write_str(&text),
            false => write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        }
    }
}

/// A number in parseable form, with its unit.
struct Written(f64, Unit);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = number_text(self.0);
        match self.1.symbol() {
            "" => f.write_str(&number),
            symbol => write!(f, "{number} {symbol}"),
        }
    }
}

struct For(u32);

impl fmt::Display for For {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            seconds => write!(f, " for {}", duration_text(seconds)),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Of(tag) => write!(f, "{tag}")?,
            Value::In(function, tag, over) => write!(f, "{}({tag}, {})", function.name(), duration_text(*over))?,
            Value::OfMean(tag, over) => {
                let (limit, over) = (number_text(self.limit), duration_text(*over));
                return write!(f, "{tag} {} {limit} x its mean over {over}", self.op.sign());
            }
            Value::Over(over, by, tag) => {
                match over {
                    Across::Mean => f.write_str("mean")?,
                    Across::Min => f.write_str("min")?,
                    Across::Max => f.write_str("max")?,
                    Across::Spread => f.write_str("spread")?,
                    Across::Share(op, limit) => write!(f, "share {} {}", op.sign(), Written(*limit, tag.unit))?,
                }
                write!(f, " over {} of {tag}", by.name())?;
            }
        }
        write!(f, " {} {}", self.op.sign(), Written(self.limit, self.value.unit()))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Threshold(t) => {
                write!(f, "{}", t.first)?;
                if let Some(second) = &t.and {
                    write!(f, " and {second}")?;
                }
                write!(f, "{}", For(t.hold))?;
                if let Some(until) = &t.until {
                    let limit = Written(until.limit, t.first.value.unit());
                    write!(f, ", until {} {limit}{}", until.op.sign(), For(until.hold))?;
                }
                Ok(())
            }
            Condition::Missing { tag, hold } => write!(f, "{tag} missing for {}", duration_text(*hold)),
            Condition::NotANumber { tag, hold } => write!(f, "{tag} is not a number{}", For(*hold)),
            Condition::Reaches { tag, limit, within } => {
                write!(f, "{tag} reaches {} within {}", Written(*limit, tag.unit), duration_text(*within))
            }
            Condition::Increases { tag } => write!(f, "{tag} increases"),
            Condition::SourceLost(hold) => write!(f, "source lost for {}", duration_text(*hold)),
            Condition::SourceJoined => f.write_str("source joined"),
            Condition::Run(states) => write!(f, "run {}", states_text(states)),
            Condition::RunLonger(than) => write!(f, "run longer than {}", duration_text(*than)),
            Condition::RunSilent(hold) => write!(f, "run without marker for {}", duration_text(*hold)),
            Condition::RunIdle(hold) => write!(f, "run idle for {}", duration_text(*hold)),
            Condition::HeldIdle(hold) => write!(f, "gpus held idle for {}", duration_text(*hold)),
            Condition::Finding { what, hold } => write!(f, "finding {}{}", what.join(", "), For(*hold)),
            Condition::Xid(numbers) if numbers.is_empty() => f.write_str("xid *"),
            Condition::Xid(numbers) => write!(f, "xid {}", listed(numbers)),
            Condition::CollectorFailed(hold) => write!(f, "collector failed for {}", duration_text(*hold)),
            Condition::HubBehind => f.write_str("hub behind"),
            Condition::HistoryFailed => f.write_str("history failed"),
            Condition::GpuHours(percent) => write!(f, "gpu hours above {percent} %"),
            Condition::FromCode => f.write_str("alert from code"),
        }
    }
}

#[cfg(test)]
mod tests;
