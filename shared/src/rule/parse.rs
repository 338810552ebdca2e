//! Reads conditions.

use super::{
    Across, By, Comparison, Condition, Fault, Function, MAX_WHEN_BYTES, OPEN, Op, Tag, Threshold, Until, Value,
    duration, number_text,
};
use crate::catalog::{self, Catalog, Kind};
use crate::run::RunState;
use crate::unit::{Dimension, Unit};

type Read<T> = Result<T, Fault>;

/// Time of `its mean` without `over`, seconds.
const DEFAULT_MEAN_SECONDS: u32 = 600;

/// Replacement of `*` while a tag is resolved: it matches where numbers must be and where text may be.
const PROBE: &str = "9081726354";

/// The largest number, and the smallest that is not 0: between them nine decimal places are exact enough.
const NUMBERS: std::ops::RangeInclusive<f64> = 1e-9..=9e15;

/// Spellings of units, besides their symbols: the dimension, and the size of one in its base unit.
const SYMBOLS: &[(&str, Unit, f64)] = &[
    ("%", Unit::Percent, 1.0),
    ("percent", Unit::Percent, 1.0),
    ("B", Unit::Bytes, 1.0),
    ("kB", Unit::Bytes, 1e3),
    ("MB", Unit::Bytes, 1e6),
    ("GB", Unit::Bytes, 1e9),
    ("TB", Unit::Bytes, 1e12),
    // Sizes in powers of two belong to units; these are their symbols, scaled.
    ("KiB", Unit::Bytes, 1024.0),
    ("MiB", Unit::Mebibytes, 1.0),
    ("GiB", Unit::Gibibytes, 1.0),
    // A tebibyte has 1024 gibibytes.
    ("TiB", Unit::Gibibytes, 1024.0),
    ("B/s", Unit::BytesPerSecond, 1.0),
    ("kB/s", Unit::BytesPerSecond, 1e3),
    ("MB/s", Unit::BytesPerSecond, 1e6),
    ("GB/s", Unit::BytesPerSecond, 1e9),
    ("kbit/s", Unit::MegabitsPerSecond, 1e-3),
    ("Mbit/s", Unit::MegabitsPerSecond, 1.0),
    ("Gbit/s", Unit::MegabitsPerSecond, 1e3),
    ("C", Unit::Celsius, 1.0),
    ("°C", Unit::Celsius, 1.0),
    ("mW", Unit::Watts, 1e-3),
    ("W", Unit::Watts, 1.0),
    ("kW", Unit::Watts, 1e3),
    ("MW", Unit::Watts, 1e6),
    ("J", Unit::Joules, 1.0),
    ("kJ", Unit::Joules, 1e3),
    ("MJ", Unit::Joules, 1e6),
    ("Wh", Unit::Joules, 3600.0),
    ("kWh", Unit::Joules, 3.6e6),
    ("MHz", Unit::Megahertz, 1.0),
    ("GHz", Unit::Megahertz, 1e3),
    ("us", Unit::Microseconds, 1.0),
    ("µs", Unit::Microseconds, 1.0),
    ("ms", Unit::Seconds, 1e-3),
    ("s", Unit::Seconds, 1.0),
    ("min", Unit::Seconds, 60.0),
    ("h", Unit::Seconds, 3600.0),
    ("d", Unit::Seconds, 86_400.0),
    ("/s", Unit::PerSecond, 1.0),
    ("k/s", Unit::PerSecond, 1e3),
    ("M/s", Unit::PerSecond, 1e6),
    ("GT/s", Unit::GigatransfersPerSecond, 1.0),
    ("k", Unit::Count, 1e3),
    ("M", Unit::Count, 1e6),
    ("G", Unit::Count, 1e9),
];

/// Reads the condition of a rule.
///
/// # Errors
/// [`Fault`]: a plain sentence, and the position.
pub fn parse(when: &str, catalog: &Catalog) -> Result<Condition, Fault> {
    if when.len() > MAX_WHEN_BYTES {
        return Err(Fault { at: 0, sentence: format!("at most {MAX_WHEN_BYTES} bytes") });
    }
    let mut reader = Reader { text: when, at: 0, catalog };
    let condition = reader.condition()?;
    reader.blank();
    if reader.at < when.len() {
        return Err(reader.fault("a rule has one condition, or two with `and` between"));
    }
    Ok(condition)
}

/// Whether the tag can be written without quotes.
pub(super) fn is_plain(tag: &str) -> bool {
    !tag.is_empty() && bare(tag) == tag.len() && !tag.starts_with('"')
}

/// Bytes of the tag at the start of the text.
fn bare(text: &str) -> usize {
    let mut depth = 0u32;
    for (i, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            // The part in braces may have blanks and signs in quotes; such tags are written in quotes as a whole.
            '"' | '\\' => return i,
            c if c.is_whitespace() => return i,
            '<' | '>' | '=' | '!' | ',' | '(' | ')' if depth == 0 => return i,
            _ => {}
        }
    }
    text.len()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    catalog: &'a Catalog,
}

/// A number with its suffix.
struct Number<'a> {
    value: f64,
    symbol: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blank(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn fault_at(&self, at: usize, sentence: impl Into<String>) -> Fault {
        Fault { at: self.text[..at].chars().count(), sentence: sentence.into() }
    }

    fn fault(&self, sentence: impl Into<String>) -> Fault {
        self.fault_at(self.at, sentence)
    }

    /// The next word, not consumed.
    fn peek(&mut self) -> &'a str {
        self.blank();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        &rest[..end]
    }

    fn skip_word(&mut self, word: &str) -> bool {
        let is = self.peek() == word;
        if is {
            self.at += word.len();
        }
        is
    }

    /// Consumes all of these words, or none.
    fn words(&mut self, words: &str) -> bool {
        let before = self.at;
        let all = words.split(' ').all(|word| self.skip_word(word));
        if !all {
            self.at = before;
        }
        all
    }

    fn sign(&mut self, sign: &str) -> bool {
        self.blank();
        let is = self.rest().starts_with(sign);
        if is {
            self.at += sign.len();
        }
        is
    }

    fn op(&mut self) -> Read<Op> {
        self.blank();
        match Op::ALL.into_iter().find(|op| self.sign(op.sign())) {
            Some(op) => Ok(op),
            None if self.sign("=") => Ok(Op::Is),
            None => Err(self.fault("expected one of > >= < <= == !=, as in `gpu.*.temp > 85 C for 2m`")),
        }
    }

    fn number(&mut self) -> Read<Number<'a>> {
        self.blank();
        let at = self.at;
        let rest = self.rest();
        let mut end = rest.len() - rest.trim_start_matches(['-', '+']).len();
        end += rest[end..].len() - rest[end..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        if let Some(power) = rest[end..].strip_prefix(['e', 'E']) {
            let sign = power.len() - power.trim_start_matches(['-', '+']).len();
            let digits = power[sign..].len() - power[sign..].trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if digits > 0 {
                end += 1 + sign + digits;
            }
        }
        let value: f64 = rest[..end].parse().map_err(|_| self.fault("expected a number, such as 85 or 1.5 GB/s"))?;
        self.at += end;
        let tail = self.rest().trim_start();
        let unit = tail.find(|c: char| !(c.is_ascii_alphabetic() || "°µ%/".contains(c))).unwrap_or(tail.len());
        let symbol = &tail[..unit];
        // Words of the grammar follow a number without a unit.
        let is_word = ["for", "until", "and", "over", "within", "of", "x"].contains(&symbol);
        let symbol = if is_word { "" } else { symbol };
        if !symbol.is_empty() {
            self.at = self.text.len() - tail.len() + unit;
        }
        Ok(Number { value, symbol, at })
    }

    /// The number in that unit; `of` is the value to compare.
    fn in_unit(&self, number: &Number, unit: Unit, of: &str) -> Read<f64> {
        let named = unit.symbol();
        let value = if number.symbol.is_empty() || number.symbol == named {
            number.value
        } else {
            let plain = |d: Dimension| matches!(d, Dimension::Other(Unit::Count | Unit::State));
            let Some((_, own, factor)) = SYMBOLS.iter().find(|(symbol, ..)| *symbol == number.symbol) else {
                let hint = if named.is_empty() { "has no unit" } else { &format!("is in {named}") };
                return Err(self.fault_at(number.at, format!("{:?} is not a known unit; {of} {hint}", number.symbol)));
            };
            let fits = own.dimension() == unit.dimension() || plain(own.dimension()) && plain(unit.dimension());
            if !fits {
                let write = number_text(number.value);
                let right = if named.is_empty() { write.clone() } else { format!("{write} {named}") };
                let is = if named.is_empty() { "is a plain number".into() } else { format!("is in {named}") };
                let sentence = format!("{write} {} does not fit, for {of} {is}: write it as {right}", number.symbol);
                return Err(self.fault_at(number.at, sentence));
            }
            number.value * factor * own.to_base() / unit.to_base()
        };
        if value != 0.0 && !NUMBERS.contains(&value.abs()) {
            return Err(self.fault_at(number.at, "the number is too large or too small"));
        }
        // Reading the printed number again gives the same value.
        Ok(number_text(value).parse().unwrap_or(value) + 0.0)
    }

    fn duration(&mut self) -> Read<u32> {
        self.blank();
        let rest = self.rest();
        let mut end = 0;
        loop {
            let digits = rest[end..].len() - rest[end..].trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if digits == 0 {
                break;
            }
            let behind = &rest[end + digits..];
            let blank = behind.len() - behind.trim_start_matches(' ').len();
            let letters =
                behind[blank..].len() - behind[blank..].trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
            end += digits + if letters > 0 { blank + letters } else { 0 };
        }
        let seconds = duration(&rest[..end]).map_err(|why| match end {
            0 => self.fault("expected a duration, such as 90s, 2m or 4h"),
            _ => self.fault(why),
        })?;
        self.at += end;
        Ok(seconds)
    }

    /// `for DUR`, if it is there.
    fn hold(&mut self) -> Read<Option<u32>> {
        if self.skip_word("for") { self.duration().map(Some) } else { Ok(None) }
    }

    fn needed(&mut self, word: &str) -> Read<u32> {
        match self.skip_word(word) {
            true => self.duration(),
            false => Err(self.fault(format!("expected `{word}` and a duration, such as `{word} 5m`"))),
        }
    }

    fn tag(&mut self) -> Read<Tag> {
        self.blank();
        let at = self.at;
        let text = if self.rest().starts_with('"') {
            self.quoted()?
        } else {
            let text = &self.rest()[..bare(self.rest())];
            self.at += text.len();
            text.to_string()
        };
        if text.is_empty() {
            return Err(self.fault_at(
                at,
                "expected the tag of a metric, such as gpu.*.temp, or one of: source, run, \
                gpus, finding, xid, collector, hub, history",
            ));
        }
        resolve(self.catalog, &text).map_err(|sentence| self.fault_at(at, sentence))
    }

    fn quoted(&mut self) -> Read<String> {
        let begin = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(text);
                }
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                c => text.push(c),
            }
        }
        Err(self.fault_at(begin, "the quotes of the tag are not closed"))
    }

    fn by(&mut self) -> Read<By> {
        match By::ALL.into_iter().find(|by| self.skip_word(by.name())) {
            Some(by) if self.skip_word("of") => Ok(by),
            Some(_) => Err(self.fault("expected `of` and a tag, as in `mean over run of gpu.*.gpu`")),
            None => Err(self.fault("a group is one of source, run, gpu")),
        }
    }

    fn value(&mut self) -> Read<Value> {
        self.blank();
        let begin = self.at;
        let name = self.peek();
        if let Some(function) = Function::ALL.into_iter().find(|f| f.name() == name) {
            self.at += name.len();
            if self.sign("(") {
                let tag = self.tag()?;
                if !self.sign(",") {
                    return Err(self.fault(format!("expected a comma and a duration, as in {name}({tag}, 5m)")));
                }
                let at = self.at;
                let over = self.duration()?;
                if over == 0 {
                    return Err(self.fault_at(at, "a function needs a duration above 0"));
                }
                if !self.sign(")") {
                    return Err(self.fault("expected )"));
                }
                let counts = matches!(function, Function::Rate | Function::Increase);
                if counts && tag.kind != Kind::Counter && !tag.is_open() {
                    let sentence = format!(
                        "{tag} is not a counter, so it has no {name}: use change({tag}, 5m) or mean({tag}, 5m)"
                    );
                    return Err(self.fault_at(begin, sentence));
                }
                return Ok(Value::In(function, tag, over));
            }
            self.at = begin;
        }
        let over = [("mean", Across::Mean), ("min", Across::Min), ("max", Across::Max), ("spread", Across::Spread)];
        if let Some((_, over)) = over.into_iter().find(|(name, _)| self.words(&format!("{name} over"))) {
            let by = self.by()?;
            return Ok(Value::Over(over, by, self.tag()?));
        }
        if self.skip_word("share") {
            let op = self.op()?;
            let number = self.number()?;
            if !self.skip_word("over") {
                return Err(self.fault("expected `over`, as in `share < 5 % over run of gpu.*.gpu > 50 %`"));
            }
            let by = self.by()?;
            let tag = self.tag()?;
            let limit = self.in_unit(&number, tag.unit, &tag.text())?;
            return Ok(Value::Over(Across::Share(op, limit), by, tag));
        }
        self.tag().map(Value::Of)
    }

    fn comparison(&mut self, value: Value) -> Read<Comparison> {
        let op = self.op()?;
        let number = self.number()?;
        if self.words("x its mean") {
            let Value::Of(tag) = value else {
                return Err(self.fault("`x its mean` compares the samples of a tag, as in `job.loss > 3 x its mean`"));
            };
            let over = if self.skip_word("over") { self.duration()? } else { DEFAULT_MEAN_SECONDS };
            if over == 0 {
                return Err(self.fault("a mean needs a duration above 0"));
            }
            let limit = self.in_unit(&number, Unit::Count, "a part of the mean")?;
            return Ok(Comparison { value: Value::OfMean(tag, over), op, limit });
        }
        let of = match &value {
            Value::Of(tag) | Value::OfMean(tag, _) => tag.text(),
            Value::In(function, tag, _) => format!("{} of {}", function.name(), tag.text()),
            Value::Over(Across::Share(..), ..) => "a share".into(),
            Value::Over(_, _, tag) => tag.text(),
        };
        let limit = self.in_unit(&number, value.unit(), &of)?;
        Ok(Comparison { value, op, limit })
    }

    fn threshold(&mut self, value: Value) -> Read<Condition> {
        let first = self.comparison(value)?;
        let mut hold = self.hold()?;
        let and = if self.skip_word("and") {
            let at = self.at;
            let value = self.value()?;
            let second = self.comparison(value)?;
            if matches!(first.value, Value::Over(..)) || matches!(second.value, Value::Over(..)) {
                return Err(self.fault_at(at, "`and` must stand between conditions on one series, not on groups"));
            }
            let again = self.hold()?;
            if let (Some(a), Some(b)) = (hold, again)
                && a != b
            {
                return Err(self.fault("one `for` applies to both conditions: write it once, at the end"));
            }
            hold = hold.or(again);
            Some(second)
        } else {
            None
        };
        if self.skip_word("and") {
            return Err(self.fault("a rule has at most two conditions: make another rule"));
        }
        let comma = self.sign(",");
        let until = if self.skip_word("until") {
            let at = self.at;
            let op = self.op()?;
            let number = self.number()?;
            let limit = self.in_unit(&number, first.value.unit(), &first.value.tag().text())?;
            let overlaps = match (first.op, op) {
                (Op::Above | Op::AtLeast, Op::Below | Op::AtMost) => limit > first.limit,
                (Op::Below | Op::AtMost, Op::Above | Op::AtLeast) => limit < first.limit,
                (Op::Above | Op::AtLeast, Op::Above | Op::AtLeast)
                | (Op::Below | Op::AtMost, Op::Below | Op::AtMost) => true,
                _ => false,
            };
            if overlaps {
                return Err(self.fault_at(
                    at,
                    "`until` needs values at which the rule does not fire, as in `> 85 C for 2m, until < 82 C`",
                ));
            }
            Some(Until { op, limit, hold: self.hold()?.unwrap_or(0) })
        } else if comma {
            return Err(self.fault("expected `until` after the comma"));
        } else {
            None
        };
        Ok(Condition::Threshold(Threshold { first, and, hold: hold.unwrap_or(0), until }))
    }

    /// Words with commas between.
    fn list(&mut self, letter: impl Fn(char) -> bool, what: &str) -> Read<Vec<(usize, &'a str)>> {
        let mut all = Vec::new();
        loop {
            self.blank();
            let rest = self.rest();
            let end = rest.find(|c: char| !letter(c)).unwrap_or(rest.len());
            if end == 0 {
                return Err(self.fault(what));
            }
            all.push((self.at, &rest[..end]));
            self.at += end;
            if !self.sign(",") {
                return Ok(all);
            }
        }
    }

    /// Condition after `finding`.
    fn finding(&mut self) -> Read<Condition> {
        let letter = |c: char| c.is_ascii_alphanumeric() || "_.*!".contains(c);
        let what = self.list(
            letter,
            "expected a kind of finding such as hang, a rule such as hang.spin, critical, warning, note, or *",
        )?;
        let what: Vec<String> = what.into_iter().map(|(_, word)| word.to_string()).collect();
        if what.iter().all(|word| word.starts_with('!')) {
            return Err(self.fault("beside the exclusions, name what to include, as in `finding *, !idle`"));
        }
        Ok(Condition::Finding { what, hold: self.hold()?.unwrap_or(0) })
    }

    /// Condition after `xid`.
    fn xid(&mut self) -> Read<Condition> {
        if self.sign("*") {
            return Ok(Condition::Xid(Vec::new()));
        }
        let words =
            self.list(|c| c.is_ascii_digit(), "expected numbers of XID errors, as in `xid 48, 79`, or `xid *`")?;
        let mut numbers = Vec::new();
        for (at, word) in words {
            numbers.push(word.parse().map_err(|_| self.fault_at(at, "this is not the number of an XID error"))?);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Condition::Xid(numbers))
    }

    /// `85 %`, a whole number from 1 to 1,000.
    fn gpu_hours(&mut self) -> Read<Condition> {
        self.blank();
        let at = self.at;
        let number = self.rest();
        let digits = number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let percent = number[..digits].parse().ok().filter(|percent| (1..=1_000).contains(percent));
        self.at += digits;
        match (percent, self.sign("%")) {
            (Some(percent), true) => Ok(Condition::GpuHours(percent)),
            _ => Err(self.fault_at(at, "expected percent of the limit, such as `gpu hours above 85 %`")),
        }
    }

    fn condition(&mut self) -> Read<Condition> {
        if self.words("source lost") {
            return Ok(Condition::SourceLost(self.hold()?.unwrap_or(60)));
        }
        if self.words("source joined") {
            return Ok(Condition::SourceJoined);
        }
        if self.words("run longer than") {
            return self.duration().map(Condition::RunLonger);
        }
        if self.words("run without marker") {
            return self.needed("for").map(Condition::RunSilent);
        }
        if self.words("run idle") {
            return self.needed("for").map(Condition::RunIdle);
        }
        if self.words("gpus held idle") {
            return self.needed("for").map(Condition::HeldIdle);
        }
        if self.words("collector failed") {
            return self.needed("for").map(Condition::CollectorFailed);
        }
        if self.words("hub behind") {
            return Ok(Condition::HubBehind);
        }
        if self.words("alert from code") {
            return Ok(Condition::FromCode);
        }
        if self.words("history failed") {
            return Ok(Condition::HistoryFailed);
        }
        if self.words("gpu hours above") {
            return self.gpu_hours();
        }
        if self.skip_word("run") {
            return self.run();
        }
        if self.skip_word("finding") {
            return self.finding();
        }
        if self.skip_word("xid") {
            return self.xid();
        }
        let value = self.value()?;
        if let Value::Of(tag) = &value {
            if self.skip_word("missing") {
                let hold = self.needed("for")?;
                return Ok(Condition::Missing { tag: tag.clone(), hold });
            }
            let at = self.at;
            if self.words("is not a number") {
                // Only values of jobs have the series in which NaN and infinities are recorded.
                if tag.template != catalog::job::VALUE.tag || tag.instance.contains('{') {
                    let sentence =
                        "`is not a number` needs the name of a job's value, as in `job.loss is not a number`";
                    return Err(self.fault_at(at, sentence));
                }
                return Ok(Condition::NotANumber { tag: tag.clone(), hold: self.hold()?.unwrap_or(0) });
            }
            if self.skip_word("increases") {
                return Ok(Condition::Increases { tag: tag.clone() });
            }
            if self.skip_word("reaches") {
                let number = self.number()?;
                let limit = self.in_unit(&number, tag.unit, &tag.text())?;
                let at = self.at;
                let within = self.needed("within")?;
                if within < 60 {
                    return Err(self.fault_at(at, "a prediction looks ahead at least 1m"));
                }
                return Ok(Condition::Reaches { tag: tag.clone(), limit, within });
            }
        }
        self.threshold(value)
    }

    fn run(&mut self) -> Read<Condition> {
        let what = "expected states of a run, as in `run crashed, unreachable`, or longer than, without marker, idle";
        let mut states = Vec::new();
        for (at, word) in self.list(|c| c.is_ascii_alphabetic() || c == '_', what)? {
            match RunState::of_word(word) {
                Some(own) => states.extend(own),
                None => {
                    let names = RunState::ALL.map(RunState::name).join(", ");
                    return Err(self.fault_at(at, format!("{word:?} is not a state of a run: states are {names}")));
                }
            }
        }
        states.sort_unstable();
        states.dedup();
        Ok(Condition::Run(states))
    }
}

/// The series of a tag, in any spelling that the catalog knows.
fn resolve(catalog: &Catalog, text: &str) -> Result<Tag, String> {
    let made = |metric: u16, instance: String| {
        let row = &catalog.metrics[usize::from(metric)];
        let text = catalog::fill(&row.tag, &instance);
        let rest = |open: &catalog::MetricDef| {
            let prefix = open.tag.split('{').next().unwrap_or("");
            text.strip_prefix(prefix).map(|rest| (open.tag.to_string(), rest.to_string()))
        };
        let (template, instance) =
            OPEN.iter().find_map(|open| rest(open)).unwrap_or_else(|| (row.tag.clone(), instance));
        Tag { template, instance, unit: row.unit, kind: row.kind, title: row.title.clone() }
    };
    if let Some(found) = catalog.known(&text.replace('*', PROBE)) {
        let instance = match &found.label {
            None => found.instance,
            Some(_) => found.of_rank().ok_or_else(|| {
                format!("{text:?} names the writer of a W&B run after /l:, which is not supported: leave it out")
            })?,
        };
        return Ok(made(found.metric, instance.replace(PROBE, "*")));
    }
    // The row itself, with or without its placeholder: all its series.
    let whole = catalog.metrics.iter().position(|row| {
        catalog::split(&row.tag).is_some_and(|(before, after, _)| {
            let short = format!("{}{after}", before.trim_end_matches('.'));
            row.tag == text || short.trim_start_matches('.') == text
        })
    });
    match whole {
        Some(position) => Ok(made(position as u16, "*".into())),
        None => {
            let series = catalog.find(text).err().map(|e| e.nearest).unwrap_or_default();
            let nearest = match catalog::split(&series) {
                Some((before, after, _)) => format!("{before}*{after}"),
                None => series,
            };
            Err(format!(
                "no metric has the tag {text:?}; the nearest is {nearest:?}; all are in the docs: /docs/reference/metrics.html"
            ))
        }
    }
}
