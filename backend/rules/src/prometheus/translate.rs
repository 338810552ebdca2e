//! Translation of one PromQL expression to one `when`.

use super::names::{
    FACTS, FILLING, How, IDLE_LABELS, MACHINE_LABELS, NAMES, SERIES_LABELS, SHARES, UNRESERVED, USABLE, USED,
};
use super::promql::{Expr, Op, Selector};
use shared::catalog::prometheus::{Family, Names, written};
use shared::catalog::{Catalog, Kind};
use shared::rule::{MAX_DURATION, number_text, parse};
use std::collections::BTreeMap;

/// Lookback of Prometheus: a series silent for longer is gone, seconds.
const LOOK_BACK: f64 = 300.0;
/// Minimum `for` of a condition on a silent machine, seconds.
const LEAST_LOST: u32 = 60;

/// Result of a translation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Translated {
    pub when: String,
    /// As in a rule.
    pub on: BTreeMap<String, String>,
    /// Parts left out, and the reason why the meaning stays the same.
    pub notes: Vec<String>,
    /// Differences of meaning, if any.
    differs: Vec<String>,
}

/// A number computed from one tag: our value in the base unit `times` a factor, and `plus`.
#[derive(Clone, Debug, PartialEq)]
struct Reckoned {
    tag: String,
    /// Function and seconds.
    function: Option<(&'static str, f64)>,
    /// Function and group.
    over: Option<(String, &'static str)>,
    times: f64,
    plus: f64,
    /// It counts seconds or cores, and still needs `rate` or a mean.
    pending: How,
    /// Its name is that of another exporter.
    is_foreign: bool,
    on: BTreeMap<String, String>,
    notes: Vec<String>,
    /// As in [`Translated`].
    differs: Vec<String>,
}

pub(super) struct Translator<'a> {
    catalog: &'a Catalog,
    names: Names,
    /// Seconds of the rule's `for`.
    hold: u32,
    /// Seconds of its `keep_firing_for`.
    keep: Option<u32>,
}

type TranslateResult<T> = Result<T, String>;

impl<'a> Translator<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> Self {
        Translator { catalog, names: Names::new(catalog), hold: 0, keep: None }
    }

    /// The `when` of an expression that must hold for `hold` seconds.
    ///
    /// # Errors
    /// The part without an exact equivalent.
    pub(super) fn rule(&mut self, expr: &Expr, hold: u32, keep: Option<u32>) -> TranslateResult<Translated> {
        (self.hold, self.keep) = (hold, keep);
        let translated = self.condition(expr)?;
        match translated.differs.as_slice() {
            [] => Ok(translated),
            differs => {
                let Translated { when, on, .. } = &translated;
                let on = on.iter().map(|(key, value)| format!(", on {key} = {value}")).collect::<String>();
                // Our own spelling, with units.
                let when = parse(when, self.catalog).map_or_else(|_| when.clone(), |condition| condition.to_string());
                Err(format!("{}; the nearest rule here is `{when}`{on}", differs.join("; ")))
            }
        }
    }

    fn condition(&self, expr: &Expr) -> TranslateResult<Translated> {
        let bare = without_facts(expr);
        match bare {
            Expr::Binary(Op::And, left, right) => self.both(left, right),
            Expr::Binary(Op::Compare(sign), left, right) => self.comparison(sign, left, right),
            Expr::Call(name, inner) if name == "absent" || name == "absent_over_time" => self.absent(name, inner),
            Expr::Binary(op @ (Op::Or | Op::Unless), ..) => {
                Err(format!("`{op}` of two conditions is not one condition; write two rules"))
            }
            _ => Err("it has no comparison; here a missing series does not fire".into()),
        }
    }

    /// Two conditions. The second may only be one that always holds here.
    fn both(&self, left: &Expr, right: &Expr) -> TranslateResult<Translated> {
        if let Some(note) = holds_here(right) {
            let mut one = self.condition(left)?;
            one.notes.push(note);
            return Ok(one);
        }
        if let Some(note) = holds_here(left) {
            let mut one = self.condition(right)?;
            one.notes.push(note);
            return Ok(one);
        }
        let (bare_left, bare_right) = (without_facts(left), without_facts(right));
        let (Expr::Binary(Op::Compare(a), al, ar), Expr::Binary(Op::Compare(b), bl, br)) = (bare_left, bare_right)
        else {
            return Err("`and` is supported only once, between two comparisons of values".into());
        };
        let first = self.side(a, al, ar)?;
        let second = self.side(b, bl, br)?;
        if first.on != second.on {
            return Err("both sides of `and` must select the same machines".into());
        }
        if self.keep.is_some() {
            return Err(
                "`keep_firing_for` of two conditions is not translated: it does not say which of them it extends"
                    .into(),
            );
        }
        let when = format!("{} and {}{}", first.when, second.when, self.held());
        let notes = [first.notes, second.notes].concat();
        Ok(Translated { when, on: first.on, notes, differs: [first.differs, second.differs].concat() })
    }

    fn held(&self) -> String {
        if self.hold == 0 { String::new() } else { format!(" for {}s", self.hold) }
    }

    fn comparison(&self, sign: &str, left: &Expr, right: &Expr) -> TranslateResult<Translated> {
        if let Some(found) = self.reaches(sign, left, right)? {
            return Ok(found);
        }
        if let (Expr::Selector(up), Some(limit)) = (without_facts(left), number(right))
            && up.name == "up"
        {
            return match (sign, limit) {
                ("==", 0.0) | ("<", 1.0) | ("!=", 1.0) => {
                    let (on, _) = self.machines(up, "")?;
                    let when = format!("source lost for {}s", self.hold.max(LEAST_LOST));
                    let mut notes = vec![
                        "`up` is the state of a Prometheus target; here it is the state of the machine's agent".into(),
                    ];
                    if self.hold < LEAST_LOST {
                        notes.push("a machine is lost after a minute without data".into());
                    }
                    // Another job name is a program of the machine, which may be down while the machine is up.
                    let is_machine =
                        |(label, _, value): &&(String, &str, String)| label == "job" && !value.contains("node");
                    let differs = up.labels.iter().find(is_machine).map(|(_, _, value)| {
                        format!("the job {value:?} is a program of a machine; it can be down while the machine is up")
                    });
                    Ok(Translated { when, on, notes, differs: differs.into_iter().collect() })
                }
                _ => Err("`up` is 0 or 1".into()),
            };
        }
        let Translated { when: text, on, notes, differs } = self.side(sign, left, right)?;
        let until = match self.keep {
            Some(keep) => {
                let against = opposite(sign_of(&text));
                let limit = text.rsplit(' ').next().unwrap_or_default();
                format!(", until {against} {limit} for {keep}s")
            }
            None => String::new(),
        };
        Ok(Translated { when: format!("{text}{}{until}", self.held()), on, notes, differs })
    }

    /// `TAG OP NUMBER`, and the label conditions.
    fn side(&self, sign: &str, left: &Expr, right: &Expr) -> TranslateResult<Translated> {
        let (mut sign, value, limit) = match (number(left), number(right)) {
            (None, Some(limit)) => (sign, left, limit),
            (Some(limit), None) => (turned(sign), right, limit),
            (Some(_), Some(_)) => return Err("it compares two numbers".into()),
            (None, None) => return Err("it compares two values; here a value is compared with a number".into()),
        };
        let reckoned = self.value(value)?;
        if reckoned.pending != How::Plain {
            return Err("it compares a counter itself; write `rate` of it".into());
        }
        if reckoned.times < 0.0 {
            sign = turned(sign);
        }
        let base = (limit - reckoned.plus) / reckoned.times;
        let limit = self.stored(&reckoned, base)?;
        let tag = quoted(&reckoned.tag);
        let text = match (&reckoned.function, &reckoned.over) {
            (Some(_), Some(_)) => return Err("a function of a group is not translated; write it without `by`".into()),
            (Some((name, seconds)), None) => format!("{name}({tag}, {}s)", whole(*seconds)?),
            (None, Some((name, by))) => format!("{name} over {by} of {tag}"),
            (None, None) => tag,
        };
        let when = format!("{text} {sign} {}", number_text(rounded(limit)));
        Ok(Translated { when, on: reckoned.on, notes: reckoned.notes, differs: reckoned.differs })
    }

    /// Converts a limit from the base unit to the tag's unit.
    fn stored(&self, reckoned: &Reckoned, base: f64) -> TranslateResult<f64> {
        // The rule parser resolves the row of a tag with a pattern.
        let probe = parse(&format!("{} > 0", quoted(&reckoned.tag)), self.catalog).map_err(|fault| fault.sentence)?;
        let template = probe.tags().first().map(|tag| tag.template.clone()).unwrap_or_default();
        let metric = self.catalog.position(&template).and_then(|at| self.catalog.metrics.get(usize::from(at)));
        let metric = metric.ok_or_else(|| format!("no metric has the tag {}", reckoned.tag))?;
        // Their counter starts at the machine's boot.
        let is_whole = reckoned.function.is_none() && metric.kind == Kind::Counter;
        if is_whole && reckoned.is_foreign && !reckoned.tag.starts_with("gpu.") {
            return Err(
                "it compares a count since the start of the machine; here counts begin with Watchglass: write \
                `increase` or `rate` of it"
                    .into(),
            );
        }
        Ok(match reckoned.function {
            // A rate is in the base unit.
            Some(("rate", _)) => base,
            _ => Family::from_metric(metric).stored(base),
        })
    }

    /// `predict_linear(METRIC[W], S) < 0`.
    fn reaches(&self, sign: &str, left: &Expr, right: &Expr) -> TranslateResult<Option<Translated>> {
        let Expr::Call(name, inner) = without_facts(left) else { return Ok(None) };
        if name != "predict_linear" {
            return Ok(None);
        }
        let ([Expr::Selector(of), within], Some(limit)) = (inner.as_slice(), number(right)) else {
            return Err("`predict_linear` is supported only as predict_linear(METRIC[1h], SECONDS) < NUMBER".into());
        };
        let within = number(within).ok_or("the seconds of `predict_linear` must be a number")?;
        if !(60.0..=f64::from(MAX_DURATION)).contains(&within) {
            return Err("a prediction is 1 min to 7 d ahead".into());
        }
        let mut notes = vec!["the slope here covers an hour, or an eighth of the time ahead".to_string()];
        if FILLING.contains(&of.name.as_str()) {
            if !sign.starts_with('<') || limit != 0.0 {
                return Err("the free space of a file system must be compared with 0: full".into());
            }
            let (on, instance) = self.machines(of, "mountpoint")?;
            let tag = quoted(&"disk.*.usagePercent".replace('*', &instance));
            let when = format!("{tag} reaches 100 within {}s", whole(within)?);
            notes.extend(dropped(of));
            let of_root = of.name == "node_filesystem_free_bytes";
            let differs = of_root
                .then(|| "its free space includes the blocks reserved for root; here they count as used".to_string());
            return Ok(Some(Translated { when, on, notes, differs: differs.into_iter().collect() }));
        }
        let plain = Selector { range: None, ..of.clone() };
        let reckoned = self.value(&Expr::Selector(plain))?;
        let base = (limit - reckoned.plus) / reckoned.times;
        let limit = number_text(rounded(self.stored(&reckoned, base)?));
        let when = format!("{} reaches {limit} within {}s", quoted(&reckoned.tag), whole(within)?);
        notes.extend(reckoned.notes);
        Ok(Some(Translated { when, on: reckoned.on, notes, differs: reckoned.differs }))
    }

    fn absent(&self, name: &str, inner: &[Expr]) -> TranslateResult<Translated> {
        let [Expr::Selector(of)] = inner else { return Err("`absent` must contain one metric".into()) };
        if of.name == "up" {
            return Err("a target that Prometheus does not know is unknown here too; write `source lost`".into());
        }
        let reckoned = self.named(&Selector { range: None, ..of.clone() })?;
        // Without a range, a series is gone at once if a scrape lacks it, or after the lookback if the target is down.
        let seconds = match of.range {
            Some(range) if name == "absent_over_time" => whole(range + f64::from(self.hold))?,
            _ => whole(LOOK_BACK.max(f64::from(self.hold)))?,
        };
        let one = |text: &String| !text.contains(['*', ',', '!']);
        let mut differs = reckoned.differs;
        if !one(&reckoned.tag) || !reckoned.on.get("source").is_some_and(one) {
            differs
                .push("there it fires when no machine has the series; here it fires for each series that ends".into());
        }
        let notes = [vec!["it fires only while the machine reports".into()], reckoned.notes].concat();
        let when = format!("{} missing for {seconds}s", quoted(&reckoned.tag));
        Ok(Translated { when, on: reckoned.on, notes, differs })
    }

    fn value(&self, expr: &Expr) -> TranslateResult<Reckoned> {
        match without_facts(expr) {
            Expr::Selector(of) if of.range.is_some() => {
                Err("a range belongs into a function, such as rate(x[5m])".into())
            }
            Expr::Selector(of) => self.named(of),
            Expr::Call(name, inner) => self.function(name, inner),
            Expr::Group(name, by, inner) => self.group(name, by, inner),
            Expr::Binary(op, left, right) => self.reckoned(*op, left, right),
            Expr::Number(_) => Err("it compares numbers only".into()),
        }
    }

    fn reckoned(&self, op: Op, left: &Expr, right: &Expr) -> TranslateResult<Reckoned> {
        if op == Op::Over
            && let Some(share) = self.share(left, right)?
        {
            return Ok(share);
        }
        // The same as (part * 100) / whole.
        if let (Op::Over, Expr::Binary(Op::Times, a, b)) = (op, without_facts(left)) {
            let (part, by) = match (number(a), number(b)) {
                (None, Some(by)) => (a, by),
                (Some(by), None) => (b, by),
                _ => (a, 0.0),
            };
            if by != 0.0
                && let Some(share) = self.share(part, right)?
            {
                return Ok(Reckoned { times: share.times * by, plus: share.plus * by, ..share });
            }
        }
        // (whole - part) / whole is 1 minus the share.
        if let (Op::Over, Expr::Binary(Op::Minus, whole, part)) = (op, without_facts(left))
            && same(whole, right)
            && let Some(share) = self.share(part, right)?
        {
            return Ok(Reckoned { times: -share.times, plus: 1.0 - share.plus, ..share });
        }
        let is_now = match left {
            Expr::Selector(now) => now.name == "node_time_seconds",
            Expr::Call(name, inner) => name == "time" && inner.is_empty(),
            _ => false,
        };
        if let (Op::Minus, true, Expr::Selector(boot)) = (op, is_now, right)
            && boot.name == "node_boot_time_seconds"
        {
            let (on, _) = self.machines(boot, "")?;
            return Ok(Reckoned { on, ..plain("system.uptime".into()) });
        }
        let (reckoned, by, first) = match (number(left), number(right)) {
            (None, Some(by)) => (self.value(left)?, by, false),
            (Some(by), None) => (self.value(right)?, by, true),
            _ => return Err(format!("{op} of two values is not translated, except for shares in the catalog")),
        };
        let Reckoned { times, plus, .. } = reckoned;
        let (times, plus) = match (op, first) {
            (Op::Plus, _) => (times, plus + by),
            (Op::Minus, false) => (times, plus - by),
            (Op::Minus, true) => (-times, by - plus),
            (Op::Times, _) => (times * by, plus * by),
            (Op::Over, false) => (times / by, plus / by),
            _ => return Err(format!("`{op}` is not translated")),
        };
        match times.is_finite() && times != 0.0 && plus.is_finite() {
            true => Ok(Reckoned { times, plus, ..reckoned }),
            false => Err("its numbers cancel the value out".into()),
        }
    }

    /// A share that the catalog has.
    fn share(&self, part: &Expr, whole: &Expr) -> TranslateResult<Option<Reckoned>> {
        let (Some((part, selector)), Some((of, other))) = (sum_of(part), sum_of(whole)) else { return Ok(None) };
        let Some(shared) = SHARES.iter().find(|one| one.part == part && one.whole == of) else {
            return match NAMES.iter().any(|one| one.name == part) || part.starts_with("node_filesystem_files") {
                true => Err(format!("the catalog has no share of {part} in {of}")),
                false => Ok(None),
            };
        };
        // The labels of the part are enough: the whole has the same labels.
        if !other.labels.iter().all(|label| selector.labels.contains(label)) {
            return Err(format!("the labels of {part} and {of} select different series"));
        }
        let part = selector;
        let (on, instance) = self.machines(part, shared.label)?;
        let tag = shared.tag.replace('*', &instance);
        let notes = dropped(part);
        let differs = shared.differs.map(String::from).into_iter().collect();
        Ok(Some(Reckoned { times: shared.times, plus: shared.plus, on, notes, differs, ..plain(tag) }))
    }

    fn function(&self, name: &str, inner: &[Expr]) -> TranslateResult<Reckoned> {
        let [Expr::Selector(of)] = inner else {
            return Err(format!("`{name}` is translated only for one metric with a range"));
        };
        let Some(range) = of.range else { return Err(format!("`{name}` is not translated")) };
        let reckoned = self.named(&Selector { range: None, ..of.clone() })?;
        let shares = reckoned.pending != How::Plain;
        let mut reckoned = reckoned;
        if name == "irate" {
            reckoned.differs.push("`irate` uses the two newest scrapes, whose distance only Prometheus knows".into());
        }
        let function = match (name, shares) {
            // They count time; our value is the share of the time.
            ("rate" | "irate", true) => {
                // `irate` uses the two newest samples of the range.
                let function = (name == "rate").then_some(("mean", range));
                let pending = if reckoned.pending == How::Rate { How::Plain } else { How::MeanRate };
                return Ok(Reckoned { function, pending, ..reckoned });
            }
            (_, true) => return Err(format!("`{name}` of a counter of time is not translated; write `rate`")),
            ("rate" | "irate", false) => "rate",
            ("increase", false) => "increase",
            ("delta", false) => "change",
            ("avg_over_time", false) => "mean",
            ("min_over_time", false) => "min",
            ("max_over_time", false) => "max",
            ("last_over_time", false) => return Ok(reckoned),
            (other, false) => {
                return Err(format!(
                    "the function `{other}` is not translated; supported are rate, mean, min, max, increase and \
                    change"
                ));
            }
        };
        // A constant offset cancels in a difference.
        let plus = if ["rate", "increase", "change"].contains(&function) { 0.0 } else { reckoned.plus };
        Ok(Reckoned { function: Some((function, range)), plus, ..reckoned })
    }

    fn group(&self, name: &str, by: &[String], inner: &Expr) -> TranslateResult<Reckoned> {
        let of_machine = by.iter().any(|label| MACHINE_LABELS.contains(&label.as_str()));
        let of_gpu = by.iter().any(|label| label == "gpu" || label == "UUID");
        let reckoned = self.value(inner)?;
        // Labels that form smaller or other groups than ours.
        let own = self.label_of(inner);
        let is_known = |label: &&String| {
            let label = label.as_str();
            MACHINE_LABELS.contains(&label)
                || IDLE_LABELS.contains(&label)
                || ["gpu", "UUID"].contains(&label)
                || own.as_deref() == Some(label)
                || label == "mode" && reckoned.pending != How::Plain
        };
        if let Some(label) = by.iter().find(|label| !is_known(label)) {
            return Err(format!("groups by {label} are not translated; write `{name} by (instance)`"));
        }
        // Each series is a group of its own.
        if of_machine && own.is_some_and(|own| by.contains(&own)) && ["avg", "min", "max", "sum"].contains(&name) {
            return Ok(reckoned);
        }
        if reckoned.pending == How::MeanRate {
            return match (name, of_machine) {
                ("avg", true) => Ok(Reckoned { pending: How::Plain, ..reckoned }),
                _ => Err(format!(
                    "a machine has only the mean of its cores: `{name}` over cores is not translated, `avg by \
                    (instance)` is"
                )),
            };
        }
        let word = match name {
            "avg" => "mean",
            "min" | "max" => name,
            other => return Err(format!("`{other}` of a group is not translated; supported are avg, min and max")),
        };
        // A value that a machine has once is its own group.
        if !reckoned.tag.contains('*') && (of_machine || of_gpu) {
            return Ok(reckoned);
        }
        match (of_gpu, of_machine) {
            // Each GPU has one value of a metric.
            (true, _) if reckoned.tag.starts_with("gpu.") => Ok(reckoned),
            (_, true) if reckoned.over.is_none() => Ok(Reckoned { over: Some((word.into(), "source")), ..reckoned }),
            _ => Err(format!("the group of `{name}` is not a machine or a GPU; write `{name} by (instance)`")),
        }
    }

    /// The label that distinguishes the series of a metric on a machine.
    fn label_of(&self, expr: &Expr) -> Option<String> {
        let of = match without_facts(expr) {
            Expr::Selector(of) => of,
            Expr::Call(_, inner) => return self.label_of(inner.first()?),
            Expr::Binary(_, left, right) => return self.label_of(left).or_else(|| self.label_of(right)),
            _ => return None,
        };
        let theirs = NAMES.iter().find(|one| one.name == of.name).map(|one| one.label.to_string());
        let ours = || {
            let at = (0..self.catalog.metrics.len() as u16)
                .find(|at| self.names.family(*at).is_some_and(|family| family.name == of.name))?;
            let written = written(self.catalog.metrics.get(usize::from(at))?);
            written.split_once('{').map(|(_, label)| label.trim_end_matches('}').to_string())
        };
        theirs.or_else(ours).filter(|label| !label.is_empty())
    }

    /// The tag of a metric.
    fn named(&self, of: &Selector) -> TranslateResult<Reckoned> {
        let chosen = |only: &(&str, &str)| {
            of.labels.iter().any(|(label, op, value)| label == only.0 && *op == "=" && value == only.1)
        };
        let theirs: Vec<_> = NAMES.iter().filter(|one| one.name == of.name).collect();
        if let Some(one) = theirs.iter().find(|one| one.only.as_ref().is_none_or(chosen)) {
            let labels = of.labels.iter().filter(|(label, ..)| one.only.is_none_or(|(only, _)| label != only)).cloned();
            let left = Selector { labels: labels.collect(), ..of.clone() };
            let (on, instance) = self.machines(&left, one.label)?;
            let tag = one.tag.replace('*', &instance);
            return Ok(Reckoned {
                times: one.times,
                plus: one.plus,
                pending: one.how,
                on,
                notes: dropped(&left),
                is_foreign: true,
                differs: one.differs.map(String::from).into_iter().collect(),
                ..plain(tag)
            });
        }
        if let Some(one) = theirs.first() {
            let label = one.only.map_or("", |(label, _)| label);
            let known: Vec<&str> = theirs.iter().filter_map(|one| one.only).map(|(_, value)| value).collect();
            return Err(format!("{} is translated with {label}=\"{}\"", of.name, known.join("\", or \"")));
        }
        let own = (0..)
            .zip(&self.catalog.metrics)
            .find(|(at, _)| self.names.family(*at).is_some_and(|family| family.name == of.name));
        if let Some((_, metric)) = own {
            let written = written(metric);
            let label = written.split_once('{').map_or("", |(_, label)| label.trim_end_matches('}'));
            let (on, instance) = self.machines(of, label)?;
            let tag = metric.tag.split_once('{').map_or(metric.tag.clone(), |(before, rest)| {
                let after = rest.split_once('}').map_or("", |(_, after)| after);
                format!("{before}{instance}{after}")
            });
            return Ok(plain_on(tag, on, dropped(of)));
        }
        match of.name.starts_with("watchglass_") {
            true => Err(format!("there is no metric {}", of.name)),
            false => self.scraped(of),
        }
    }

    /// A metric of a scraped endpoint: its rows are created at run time.
    fn scraped(&self, of: &Selector) -> TranslateResult<Reckoned> {
        let mut labels = Vec::new();
        let mut endpoint = None;
        let mut on = BTreeMap::new();
        for (label, op, value) in &of.labels {
            match (label.as_str(), *op) {
                ("endpoint", "=") => endpoint = Some(value.clone()),
                ("job", "=") => endpoint = endpoint.or(Some(value.clone())),
                (label, op) if MACHINE_LABELS.contains(&label) => {
                    on.insert("source".into(), pattern(label, op, value)?);
                }
                (_, "=") => labels.push(format!("{label}=\"{value}\"")),
                _ => return Err(format!("labels of a scraped metric are compared with `=` only, {label} is not")),
            }
        }
        let Some(endpoint) = endpoint else {
            return Err(format!(
                "{} is not a known metric; for a metric of a scraped page add job=\"NAME\" of [[openmetrics]]",
                of.name
            ));
        };
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        Ok(plain_on(format!("openmetrics.{endpoint}.{}{labels}", of.name), on, Vec::new()))
    }

    /// The machines that a selector matches, and the instance of its tag.
    fn machines(&self, of: &Selector, own: &str) -> TranslateResult<(BTreeMap<String, String>, String)> {
        let (mut on, mut instance) = (BTreeMap::new(), "*".to_string());
        for (label, op, value) in &of.labels {
            let name = label.as_str();
            if MACHINE_LABELS.contains(&name) {
                on.insert("source".into(), pattern(name, op, value)?);
            } else if name == own || own == "gpu" && name == "device" && value.starts_with("nvidia") {
                let value = if name == own { value.as_str() } else { value.trim_start_matches("nvidia") };
                let pattern = pattern(name, op, value)?;
                if pattern.contains([',', '!']) {
                    return Err(format!("{name} must be one value, or one pattern with *"));
                }
                instance = pattern;
            } else if IDLE_LABELS.contains(&name) || own == "mountpoint" && name == "device" {
                // See `dropped`.
            } else if SERIES_LABELS.contains(&name) {
                return Err(format!(
                    "the label {name} selects among the series of a machine, which a rule here cannot do"
                ));
            } else if *op == "=" && !name.starts_with("__") {
                on.insert(name.to_ascii_lowercase(), value.clone());
            } else {
                return Err(format!("the label {name} has no effect here"));
            }
        }
        Ok((on, instance))
    }
}

fn plain(tag: String) -> Reckoned {
    plain_on(tag, BTreeMap::new(), Vec::new())
}

fn plain_on(tag: String, on: BTreeMap<String, String>, notes: Vec<String>) -> Reckoned {
    Reckoned {
        tag,
        function: None,
        over: None,
        times: 1.0,
        plus: 0.0,
        pending: How::Plain,
        is_foreign: false,
        on,
        notes,
        differs: Vec::new(),
    }
}

/// Labels of a selector that are left out, as notes.
fn dropped(of: &Selector) -> Vec<String> {
    let mut notes = Vec::new();
    if of.name.starts_with("node_filesystem") {
        notes.push("here the paths in disk_paths are watched, of any type and device".into());
    }
    if ["node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"].contains(&of.name.as_str()) {
        notes.push(
            "with a control group that limits the memory of Watchglass, the metric here is relative to that limit"
                .into(),
        );
    }
    if of.labels.iter().any(|(label, ..)| label == "job") {
        notes.push("`job` is the name of the scrape and was left out".into());
    }
    notes
}

/// Half of [`USABLE`], as it is written without brackets.
const AVAIL_AND_SIZE: &str = "node_filesystem_avail_bytes + node_filesystem_size_bytes";

/// The name of a metric or of a known sum of metrics, and a selector with its labels. All metrics of a sum have the
/// same labels.
fn sum_of(expr: &Expr) -> Option<(&str, &Selector)> {
    match without_facts(expr) {
        Expr::Selector(of) => Some((&of.name, of)),
        Expr::Binary(op @ (Op::Plus | Op::Minus), left, right) => {
            let ((a, of), (b, other)) = (sum_of(left)?, sum_of(right)?);
            let name = match (op, a, b) {
                (Op::Minus, "node_filesystem_size_bytes", "node_filesystem_free_bytes") => USED,
                (Op::Plus, USED, "node_filesystem_avail_bytes") | (Op::Plus, "node_filesystem_avail_bytes", USED) => {
                    USABLE
                }
                (Op::Plus, "node_filesystem_avail_bytes", "node_filesystem_size_bytes") => AVAIL_AND_SIZE,
                (Op::Minus, AVAIL_AND_SIZE, "node_filesystem_free_bytes") => USABLE,
                (Op::Plus, "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE")
                | (Op::Plus, "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED") => UNRESERVED,
                _ => return None,
            };
            (of.labels == other.labels).then_some((name, of))
        }
        _ => None,
    }
}

/// The expression without joins that only name the machine: `x * on (instance) group_left (nodename) node_uname_info`.
fn without_facts(expr: &Expr) -> &Expr {
    let is_fact = |expr: &Expr| matches!(expr, Expr::Selector(of) if FACTS.contains(&of.name.as_str()));
    match expr {
        Expr::Binary(Op::Times, left, right) if is_fact(right) => without_facts(left),
        Expr::Binary(Op::Times, left, right) if is_fact(left) => without_facts(right),
        other => other,
    }
}

/// Why a second condition always holds here; None where it does not.
fn holds_here(expr: &Expr) -> Option<String> {
    let Expr::Binary(Op::Compare(sign), left, right) = expr else { return None };
    let (Expr::Selector(of), Some(limit)) = (without_facts(left), number(right)) else { return None };
    match (of.name.as_str(), *sign, limit) {
        ("node_filesystem_readonly", "==", 0.0) => Some("paths that cannot be written are watched, too".into()),
        (name, ">", 0.0) if FILLING.contains(&name) => Some("a full path has already reached it".into()),
        _ => None,
    }
}

fn same(a: &Expr, b: &Expr) -> bool {
    without_facts(a) == without_facts(b)
}

/// A number, literal or computed from numbers.
fn number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Number(number) => Some(*number),
        Expr::Binary(op, left, right) => {
            let (left, right) = (number(left)?, number(right)?);
            Some(match op {
                Op::Plus => left + right,
                Op::Minus => left - right,
                Op::Times => left * right,
                Op::Over => left / right,
                Op::Power => left.powf(right),
                _ => return None,
            })
            .filter(|number| number.is_finite())
        }
        _ => None,
    }
}

fn turned(sign: &str) -> &str {
    match sign {
        ">" => "<",
        "<" => ">",
        ">=" => "<=",
        "<=" => ">=",
        same => same,
    }
}

fn opposite(sign: &str) -> &'static str {
    match sign {
        ">" => "<=",
        "<" => ">=",
        ">=" => "<",
        "<=" => ">",
        "==" => "!=",
        _ => "==",
    }
}

/// The operator of `TAG OP NUMBER`.
fn sign_of(text: &str) -> &str {
    text.rsplit(' ').nth(1).unwrap_or_default()
}

/// Rounds to eight digits: further ones are rounding errors.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || value.abs() >= 1e6 && value.fract() == 0.0 {
        return value;
    }
    let scale = 10f64.powi(7 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

fn whole(seconds: f64) -> TranslateResult<u64> {
    match (1.0..=f64::from(MAX_DURATION)).contains(&seconds) {
        true => Ok(seconds.round() as u64),
        false => Err("a duration is 1 s to 7 d here".into()),
    }
}

/// A tag in the syntax of a condition.
fn quoted(tag: &str) -> String {
    let plain = tag.chars().all(|c| c.is_ascii_alphanumeric() || "._*/:-".contains(c));
    if plain { tag.into() } else { format!("\"{}\"", tag.replace('\\', "\\\\").replace('"', "\\\"")) }
}

/// A label matcher as a pattern of ours: `*`, commas and `!` instead of a regular expression.
fn pattern(label: &str, op: &str, value: &str) -> TranslateResult<String> {
    let not = op.starts_with('!');
    let bare = value.strip_prefix('^').unwrap_or(value);
    let bare = bare.strip_suffix('$').unwrap_or(bare);
    let bare = match bare.strip_prefix('(').and_then(|bare| bare.strip_suffix(')')) {
        Some(inner) if !inner.contains(['(', ')']) => inner,
        _ => bare,
    };
    let one = |text: &str| -> TranslateResult<String> {
        let text = match op.ends_with('~') {
            true => {
                let glob = text
                    .replace(".*", "\u{0}")
                    .replace(".+", "\u{0}")
                    .replace("\\\\.", "\u{1}")
                    .replace("\\.", "\u{1}");
                if glob.contains(['.', '[', ']', '(', ')', '+', '?', '{', '}', '^', '$', '\\', '*']) {
                    return Err(format!("the expression {value:?} of {label} is not a pattern with * only"));
                }
                glob.replace('\u{0}', "*").replace('\u{1}', ".")
            }
            false => text.to_string(),
        };
        let text = match MACHINE_LABELS.contains(&label) {
            // The port is not part of our names.
            true => text
                .rsplit_once(':')
                .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit() || b == b'*'))
                .map_or(text.clone(), |(host, _)| host.into()),
            false => text,
        };
        match text.is_empty() || text.contains([',', '!']) {
            true => Err(format!("{label} {op} {value:?} selects nothing here")),
            false => Ok(if not { format!("!{text}") } else { text }),
        }
    };
    let parts: Vec<String> = match op.ends_with('~') {
        true => bare.split('|').map(one).collect::<TranslateResult<_>>()?,
        false => vec![one(value)?],
    };
    Ok(parts.join(","))
}
