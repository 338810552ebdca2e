//! The report of a run: one HTML file without scripts, which prints on A4 and Letter, made of its summary alone.

use crate::svg_chart::{Paper, SvgChart, draw};
use charts::{Hue, axis};
use jobs::runs::{MEASURES, RunCurve, RunSummary};
use shared::catalog::{Kind, MetricDef, job};
use shared::finding::next_line;
use shared::json::Number;
use shared::note::SavedNote;
use shared::rollup::Bucket;
use shared::run::{Run, RunProcess, RunReserved};
use shared::unit::time::duration;
use shared::unit::{self, Unit, number};
use std::fmt::Write;

/// Maximum number of rows of ranks; above it the total is printed.
const MAX_RANKS: usize = 256;

const STYLE: &str = "\
@page{margin:15mm}body{font:14px/1.45 Inter,system-ui,sans-serif;color:#111;background:#fff;max-width:46rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}p{margin:.4rem 0}.state{font-weight:600}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2rem .6rem .2rem 0;border-bottom:1px solid #ddd;vertical-align:top}\
th{font-weight:600;white-space:nowrap}td.n{text-align:right;font-variant-numeric:tabular-nums}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:11px;line-height:1.35}figure{margin:.8rem 0;break-inside:avoid}svg{max-width:100%;height:auto}tr{break-inside:avoid}.small{color:#555;font-size:12px}";

/// Text in HTML.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `2026-05-01 14:00:07 UTC`.
fn instant(t: i64) -> String {
    format!("{} UTC", shared::date::text(t))
}

/// The report as HTML, with the line that explains best why the run ended, and its last lines of output: time, origin
/// and text. All texts of a job are escaped.
pub fn html(
    summary: &RunSummary,
    words: Option<&str>,
    printed: &[(i64, String, String)],
    notes: &[SavedNote],
) -> String {
    let run = &summary.run;
    let title = plain(run.about.name.as_deref().unwrap_or(&run.id));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}: {0}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\n\
         <h1>{title}</h1>\n<p class=\"state\" data-state=\"{1}\">{2} {0}</p>\n",
        plain(&run.sentence),
        run.state.name(),
        run.state.shape(),
    );
    if let Some(class) = run.failure {
        let _ = writeln!(html, "<p data-failure=\"{}\">Failure: {}</p>", class.name(), class.words());
    }
    if let Some(words) = words {
        let _ = writeln!(html, "<p class=\"words\">“{}”</p>", plain(words));
    }
    facts(summary, &mut html);
    ranks(run, &mut html);
    wrong(summary, &mut html);
    html += "<h2>Charts</h2>\n";
    if summary.curves.is_empty() {
        html += "<p>There is no sample of its machines in this time.</p>\n";
    }
    // The job's own values stand above what its machines did.
    let (own, rest): (Vec<_>, Vec<_>) = summary.curves.iter().partition(|curve| curve.tag.starts_with(job::PREFIX));
    for curve in own.into_iter().chain(rest) {
        let known = MEASURES.iter().copied().find(|measure| measure.tag == curve.tag);
        let name = curve.tag.strip_prefix(job::PREFIX);
        if let Some(measure) = known.or(name.map(|_| &job::VALUE)) {
            let chart = chart(summary, (measure, name.unwrap_or(measure.title)), curve);
            let _ = writeln!(html, "<figure>{chart}</figure>");
        }
    }
    marks(summary, &mut html);
    written(notes, &mut html);
    output(printed, &mut html);
    let _ = write!(
        html,
        "<p class=\"small\">{:.0} % of its time was measured. 1 point = {}. A line is the mean over what is measured, its band \
         the least and the largest. Made by Watchglass on {}.</p>\n</body></html>\n",
        summary.numbers.coverage * 100.0,
        duration(summary.step),
        instant(summary.made),
    );
    html
}

/// A resource that a run used, of those that a scheduler reserved for it: `3 of 16 reserved on average`. None if both are
/// unknown.
fn used_of(used: Option<f64>, reserved: Option<Number>, unit: Unit, how: &str) -> Option<String> {
    match (used, reserved) {
        (Some(used), Some(reserved)) => Some(format!("{} reserved{how}", unit::part_of(used, reserved.0, unit))),
        (Some(used), None) => Some(unit::text(used, unit) + how),
        (None, reserved) => Some(format!("{} reserved", unit::text(reserved?.0, unit))),
    }
}

/// The time of the job, of its limit.
fn time_used(reserved: &RunReserved) -> Option<String> {
    let words = |seconds: Number| duration((seconds.0 * 1_000.0).round() as i64);
    Some(format!("{} of {} used", words(reserved.used_seconds?), words(reserved.limit_seconds?)))
}

fn facts(summary: &RunSummary, html: &mut String) {
    let (run, numbers) = (&summary.run, &summary.numbers);
    let about = &run.about;
    let ended = run.ended.map_or_else(|| "not ended".into(), instant);
    let tags: Vec<String> =
        about.tags.iter().map(|(name, value)| format!("{name}={value}").trim_end_matches('=').into()).collect();
    let machines: Vec<&str> = summary.machines.keys().map(String::as_str).collect();
    let steps = numbers.step.map(|step| match numbers.steps_per_second {
        Some(rate) => format!("{step}, {rate:.2} per second"),
        None => step.to_string(),
    });
    let percent = |share: f64| format!("{share:.0} %");
    let reserved = run.reserved(summary.made).unwrap_or_default();
    let cores_peak = numbers.cores_peak.map_or_else(String::new, |peak| format!(", {} at most", number(peak)));
    let facts = [
        ("Run", Some(run.id.clone())),
        ("Project", about.project.clone()),
        ("Group", about.group.clone()),
        ("Job type", about.job_type.clone()),
        ("User", about.user.clone()),
        ("Program", Some(about.program.clone()).filter(|program| !program.is_empty())),
        ("Tags", Some(tags.join(", ")).filter(|tags| !tags.is_empty())),
        ("Notes", about.notes.clone()),
        ("Started", Some(instant(run.began))),
        ("Ended", Some(ended)),
        ("Duration", Some(duration((numbers.seconds * 1_000.0).round() as i64))),
        ("Machines", Some(machines.join(", ")).filter(|machines| !machines.is_empty())),
        ("Time limit", time_used(&reserved)),
        (
            "Cores",
            used_of(numbers.cores_mean, reserved.cores, Unit::Count, " on average").map(|used| used + &cores_peak),
        ),
        ("Memory", used_of(numbers.memory_peak_bytes, reserved.memory_bytes, Unit::Bytes, " at most")),
        (
            "GPUs held",
            used_of(
                numbers.gpus.map(|gpus| gpus as f64),
                reserved.gpus.map(|gpus| Number(gpus as f64)),
                Unit::Count,
                "",
            ),
        ),
        ("GPU-hours", numbers.gpu_hours.map(|hours| format!("{hours:.2}"))),
        ("GPUs busy", numbers.gpu_utilization.map(percent)),
        ("GPUs idle", numbers.idle_share.map(|share| format!("{} of the measured time", percent(share * 100.0)))),
        ("Energy of GPUs", numbers.energy_kwh.map(|energy| format!("{energy:.3} kWh"))),
        ("Cost", numbers.cost.zip(numbers.currency.as_ref()).map(|(cost, currency)| format!("{cost:.2} {currency}"))),
        ("GPUs", Some(numbers.gpu_models.join(", ")).filter(|models| !models.is_empty())),
        ("Driver", Some(numbers.drivers.join(", ")).filter(|drivers| !drivers.is_empty())),
        ("Steps", steps),
    ];
    *html += "<table>\n";
    for (name, value) in facts.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        let _ = writeln!(html, "<tr><th>{name}</th><td>{}</td></tr>", plain(&value));
    }
    *html += "</table>\n";
}

/// Notes of people about the run.
fn written(notes: &[SavedNote], html: &mut String) {
    if notes.is_empty() {
        return;
    }
    *html += "<h2>Notes</h2>\n<table>\n<tr><th>Time</th><th>Note</th><th>By</th></tr>\n";
    for note in notes {
        let (text, by) = (plain(&note.text).replace('\n', "<br>"), plain(&note.by));
        let _ = writeln!(html, "<tr><td>{}</td><td>{text}</td><td>{by}</td></tr>", instant(note.t.ms()));
    }
    *html += "</table>\n";
}

/// Findings during the run.
fn wrong(summary: &RunSummary, html: &mut String) {
    if summary.findings.is_empty() {
        return;
    }
    *html += "<h2>What was wrong</h2>\n<table>\n<tr><th>Since</th><th>Until</th><th>What</th></tr>\n";
    let time = |seconds: i64| axis::clock(seconds * 1_000, true);
    for finding in &summary.findings {
        let until = finding.until.map_or_else(|| "open".into(), time);
        let sentence = plain(&finding.told_at(time));
        let (since, severity) = (instant(finding.since * 1_000), finding.severity.as_str());
        let next = next_line(&finding.next).map(|next| format!("<br>{}", plain(&next))).unwrap_or_default();
        let _ = writeln!(html, "<tr><td>{since}</td><td>{until}</td><td>{severity}: {sentence}{next}</td></tr>");
    }
    *html += "</table>\n";
}

/// Markers of the job.
fn marks(summary: &RunSummary, html: &mut String) {
    if summary.markers.is_empty() {
        return;
    }
    *html += "<h2>Markers</h2>\n<table>\n<tr><th>Time</th><th>Rank</th><th>Step</th><th>Text</th></tr>\n";
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    for mark in &summary.markers {
        let (rank, step) = (number(mark.rank.map(u64::from)), number(mark.step));
        let text = plain(mark.text.as_deref().unwrap_or(&mark.kind));
        let time = axis::clock(mark.t, true);
        let _ = writeln!(html, "<tr><td>{time}</td><td>{rank}</td><td class=\"n\">{step}</td><td>{text}</td></tr>");
    }
    *html += "</table>\n";
}

fn chart(summary: &RunSummary, (measure, title): (&MetricDef, &str), curve: &RunCurve) -> String {
    let bucket = |(t, min, max, mean): &(i64, f64, f64, f64)| Bucket {
        t: *t,
        min: *min,
        max: *max,
        mean: *mean,
        last: *mean,
        count: 1,
    };
    let of = if curve.series > 1 { format!("mean of {}", curve.series) } else { String::new() };
    let to = summary.run.ended.unwrap_or(summary.made).max(summary.run.began + 1);
    let figure = SvgChart {
        title: title.into(),
        words: of.clone(),
        unit: if measure.kind == Kind::Counter { measure.unit.per_second() } else { measure.unit },
        range: measure.range,
        span: (summary.run.began, to),
        interval: summary.step,
        step: summary.step,
        series: vec![(of, Hue::Of(0), curve.points.iter().map(bucket).collect())],
    };
    draw(&figure, Paper { size: (720, 220), is_light: true })
}

/// The last lines that the run printed.
fn output(printed: &[(i64, String, String)], html: &mut String) {
    if printed.is_empty() {
        return;
    }
    *html += "<h2>Last lines</h2>\n<pre>";
    for (t, name, text) in printed {
        let _ = writeln!(html, "{} {} {}", axis::clock(*t, true), plain(name), plain(text));
    }
    *html += "</pre>\n";
}

/// The ranks, failed ones first.
fn ranks(run: &Run, html: &mut String) {
    let mut ranks: Vec<&RunProcess> = run.processes.iter().collect();
    let fell = |one: &RunProcess| one.how.as_ref().is_some_and(|how| how.exit != Some(0));
    ranks.sort_by_key(|one| (!fell(one), one.ended.filter(|_| fell(one)), one.rank.as_ref().map(|rank| rank.rank)));
    *html +=
        "<h2>Processes</h2>\n<table>\n<tr><th>Rank</th><th>Machine</th><th>GPUs</th><th>Took</th><th>Ended</th></tr>\n";
    for one in ranks.iter().take(MAX_RANKS) {
        let rank = one.rank.as_ref();
        let name = match (&one.label, rank) {
            (Some(label), _) => label.clone(),
            (None, Some(rank)) => rank.rank.to_string(),
            (None, None) => format!("process {}", one.pid),
        };
        let gpus: Vec<String> = rank.iter().flat_map(|rank| &rank.gpus).map(u32::to_string).collect();
        let sure = if rank.is_some_and(|rank| rank.assumed && !rank.gpus.is_empty()) { "?" } else { "" };
        let took = one.ended.map(|ended| duration(ended - one.began)).unwrap_or_default();
        let how = one.how.as_ref().map(|how| how.sentence()).unwrap_or_default();
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}{sure}</td><td>{took}</td><td>{}</td></tr>",
            plain(&name),
            plain(&one.source),
            gpus.join(", "),
            plain(&how),
        );
    }
    *html += "</table>\n";
    let further = run.further + ranks.len().saturating_sub(MAX_RANKS) as u64;
    if further > 0 {
        let _ = writeln!(html, "<p>{further} further processes.</p>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobs::runs::{RunMark, RunNumbers};
    use shared::failure::FailureClass;
    use shared::run::{About, How, Rank, RunState};

    #[test]
    fn a_report_says_how_it_ended_and_holds_no_script_whatever_a_job_is_called() {
        let about = About { name: Some("<script>alert(1)</script>".into()), ..About::default() };
        let process = |n: u32, exit| RunProcess {
            source: "node-1".into(),
            rank: Some(Rank { rank: n, gpus: vec![n], ..Rank::default() }),
            ended: Some(60_000),
            how: Some(How { exit: Some(exit), ..How::default() }),
            ..RunProcess::default()
        };
        let run = Run {
            id: "abc".into(),
            state: RunState::Failed,
            sentence: "failed (exit 1); first rank 3 on node-1: failed (exit 9)".into(),
            failure: Some(FailureClass::OutOfGpuMemory),
            ended: Some(60_000),
            about,
            processes: vec![process(2, 0), process(3, 9)],
            ..Run::default()
        };
        let points: Vec<_> = (0..60).map(|t| (t * 1_000, 10.0, 90.0, 50.0)).collect();
        let curve = |tag: &str, series| RunCurve { tag: tag.into(), series, points: points.clone() };
        let curves = vec![curve(MEASURES[0].tag, 2), curve("job.train/loss", 8)];
        let numbers = RunNumbers { seconds: 60.0, gpu_hours: Some(0.5), coverage: 0.98, ..RunNumbers::default() };
        let text = Some("<b>epoch</b> 3".into());
        let markers = vec![RunMark { t: 5_000, text, step: Some(1_200), rank: Some(3), ..RunMark::default() }];
        let summary = RunSummary { run, step: 1_000, numbers, curves, markers, ..RunSummary::default() };
        let note = SavedNote { text: "it <i>failed</i>\nagain".into(), by: "m&k".into(), ..SavedNote::default() };
        let html = html(&summary, Some("a<b"), &[(1_000, "rank 3".into(), "<script>x</script>".into())], &[note]);
        assert!(html.contains("<p data-failure=\"out_of_gpu_memory\">Failure: out of GPU memory</p>"), "{html}");
        assert!(html.contains("“a&lt;b”") && html.contains("00:00:01 rank 3 &lt;script&gt;x"), "{html}");
        assert!(html.contains("<td>it &lt;i&gt;failed&lt;/i&gt;<br>again</td><td>m&amp;k</td>"), "{html}");
        assert!(
            html.contains("■ failed (exit 1); first rank 3 on node-1") && html.contains("98 % of its time"),
            "{html}"
        );
        assert!(
            html.contains("<td>00:00:05</td><td>3</td><td class=\"n\">1200</td><td>&lt;b&gt;epoch&lt;/b&gt; 3</td>")
        );
        assert!(html.find("failed (exit 9)</td>") < html.find("finished</td>"), "who fell stands on top");
        let of_job = html.find("mean of 8");
        assert!(of_job.is_some() && of_job < html.find("mean of 2") && html.contains("train/loss"));
        assert!(html.contains("<svg ") && html.contains("mean of 2") && html.contains("GPU-hours"));
        for never in ["<script", "javascript:", "http://", "https://", "<img", "url("] {
            let found = html.replace("http://www.w3.org/2000/svg", "").contains(never);
            assert!(!found, "{never}");
        }
    }
}
