//! Training jobs: on the page of their machine, in the list, on a page of their own, and side by side.

use super::no_faults;
use serde_json::{Value, json};
use std::process::{Child, Stdio};
use watchglass_tests::browser::Browser;
use watchglass_tests::server::{Server, ask_with, watchglass};
use watchglass_tests::waiting::until;

const LINK: &str = "document.documentElement.dataset.link";

/// A server of a machine with GPUs, and jobs that report to it.
struct Bench {
    folder: tempfile::TempDir,
    server: Server,
    _driver: fake_nvml::Fake,
}

impl Bench {
    fn start() -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let gpu = |n: u32| {
            json!({
                "uuid": format!("GPU-{n}"), "name": "NVIDIA H200", "utilization": {"gpu": 40 + 50 * n, "memory": 0},
                "memory": {"total": 1_u64 << 37, "used": 1_u64 << (33 + n)}, "power_mw": 500_000,
            })
        };
        let scenario = json!({"driver_version": "590.48.01", "gpm_min_ms": 0, "gpus": [gpu(0), gpu(1)]});
        let driver = fake_nvml::Fake::new(&scenario.to_string());
        let config = folder.path().join("watchglass.toml");
        let library = driver.library().display().to_string();
        std::fs::write(&config, format!("[collectors.nvidia]\nlibrary = {library:?}\n")).expect("a file");
        let (data, config) = (folder.path().to_str().expect("plain"), config.to_str().expect("plain"));
        let server = Server::start(["--interval", "200ms", "--config", config, "--data-dir", data]);
        Bench { folder, server, _driver: driver }
    }

    /// Starts `watchglass run` with these arguments.
    fn job(&self, words: &[&str]) -> Child {
        let data = self.folder.path().to_str().expect("plain letters");
        let mut command = watchglass([&["run", "--data-dir", data], words].concat());
        command.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
    }

    /// A launcher like torchrun, with two ranks. When one fails, it ends the other, and itself with a plain status.
    fn launcher(&self, id: &str) -> Child {
        let rank = |n: u32| {
            let world = "WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none MASTER_ADDR=localhost MASTER_PORT=29500";
            format!("RANK={n} LOCAL_RANK={n} CUDA_VISIBLE_DEVICES=0,1 {world} sleep 1000 &")
        };
        let script = format!("{} first=$!; {} wait $!; kill $first; wait; exit 1", rank(0), rank(1));
        self.job(&[
            "--id",
            id,
            "--name",
            "<b>sft</b>",
            "--project",
            "llm",
            "--group",
            "sweep",
            "--",
            "sh",
            "-c",
            &script,
        ])
    }

    /// Waits until a run meets a condition.
    fn run(&self, id: &str, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        until(what, || {
            let answer = self.server.get(&format!("/api/v1/runs/{id}"), &[]);
            let run: Value = serde_json::from_str(&answer.body).expect("JSON");
            (answer.status == 200 && so(&run)).then_some(run)
        })
    }
}

fn open(bench: &Bench, query: &str) -> Browser {
    let browser = Browser::start();
    browser.open(&format!("{}{query}", bench.server.url));
    browser.until(&format!("{LINK} === 'live'"));
    browser
}

#[test]
fn a_job_of_a_machine_has_a_lane_and_leads_to_its_page_and_back() {
    let bench = Bench::start();
    for words in
        [&["--id", "good", "--name", "<b>lr</b>", "--", "true"][..], &["--id", "bad", "--", "sh", "-c", "exit 3"]]
    {
        bench.job(words).wait().expect("it ran");
    }
    bench.run("bad", "its end", |run| run["sentence"] == "failed (exit 3)");
    // A chart that comes later moves those after it. A value that is read every five seconds has a rate, and so a chart,
    // from its second reading on, and on a loaded machine that may be when the page is there already.
    let early = open(&bench, "");
    early.until("+document.querySelector('article[data-panel=gpu]')?.dataset.samples > 55");
    drop(early);
    let browser = open(&bench, "");
    browser.until("document.querySelector('.runs .n')?.innerText === '2'");
    assert_eq!(browser.eval("document.querySelector('.runs .gist').innerText"), "sh: failed (exit 3)");
    browser.until("document.querySelectorAll('.run-lanes [data-run]').length === 2");
    // They are below the first chart on its time axis, and take their room from it. Both places are read at once.
    let rects = browser.eval(
        "['.plot', '.run-lanes .lane:nth-child(2) .track'].map(part => document.querySelector('.charts article.chart:first-child ' + part)
            .getBoundingClientRect()).map(r => [r.left, r.top, r.width, r.height])",
    );
    let [[left, top, wide, high], [track_left, track_top, track_wide, _]]: [[f64; 4]; 2] =
        serde_json::from_value(rects).expect("two places");
    let gutter = |side: &str| {
        let of = format!("+getComputedStyle(document.documentElement).getPropertyValue('--gutter-{side}')");
        browser.eval(&of).as_f64().expect("a length")
    };
    assert!(track_top >= top + high, "{track_top} lies over the plot, which ends at {}", top + high);
    assert!((track_left - left - gutter("l")).abs() < 1.5, "{track_left} beside {left}");
    assert!((track_left + track_wide + gutter("r") - left - wide).abs() < 1.5, "{track_wide} of {wide}");
    // Links to other pages are in the bar once there are runs. Below it only the bars of the lanes moved, whose axis
    // grows on a machine that was just started.
    let moved = "window.__shifted.filter(one => !/^(finder|link|windows|icons|who|shape)\\b/.test(one))";
    assert_eq!(browser.eval(moved), json!([]));
    browser.screenshot("host-lanes-dark");
    browser.click(".runs summary");
    browser.until("document.querySelectorAll('.runs tbody tr').length === 2");
    let row = |id: &str| format!("document.querySelector('.runs [data-run={id}]')");
    assert_eq!(browser.eval(&format!("{}.dataset.state", row("bad"))), "failed");
    assert_eq!(browser.eval(&format!("{}.cells[0].innerText", row("good"))), "<b>lr</b>", "a name is text");
    browser.click(".runs [data-run=bad] button");
    browser.until(&format!("{LINK} === 'frozen'"));
    browser.click(".runs [data-run=bad] a");
    browser.until("document.querySelector('.run-head[data-run=bad]')?.innerText.includes('Failed (exit 3)')");
    browser.eval("history.back()");
    browser.until("document.querySelector('.runs .n')?.innerText === '2'");
    no_faults(&browser);
    // In the lanes of all machines, the end of a run is marked at its place.
    browser.open(&format!("{}?page=fleet", bench.server.url));
    browser.until("document.querySelector('.fleet-runs .fell')?.innerText.includes('failed')");
    // Both places are read at once: the lanes move with the time.
    let places = browser.eval(
        "(all => [all[0].right, all[1].left])(['.fell', '.life.is-bad'].map(part => document.querySelector('.fleet-runs ' + part)
            .getBoundingClientRect()))",
    );
    let [end, begin]: [f64; 2] = serde_json::from_value(places).expect("two places");
    assert!((end - begin).abs() < 3.0, "it ends at {end}, the job began at {begin}");
    let times = "[...document.querySelectorAll('.fleet-runs .times span')].every(t => t.innerText.endsWith(':00'))";
    assert_eq!(browser.eval(times), true, "whole hours");
    no_faults(&browser);
}

#[test]
fn runs_are_listed_filtered_shown_with_their_ranks_and_compared() {
    let bench = Bench::start();
    let mut job = bench.launcher("sft");
    bench.job(&["--id", "other", "--project", "images", "--", "sleep", "1"]).wait().expect("it ran");
    let known = |run: &Value| run["ranks"] == 2 && run["gpus"] == 2 && run["gpu_utilization"].is_number();
    let run = bench.run("sft", "its ranks and their GPUs", known);
    assert!(run["gpus_assumed"] == true && run["energy_kwh"].is_null(), "what is assumed costs no energy: {run}");

    let browser = open(&bench, "?page=runs");
    browser.until("document.querySelectorAll('#runs tr[data-row]:not(.group)').length === 2");
    assert_eq!(browser.eval("document.querySelectorAll('#runs .group').length"), 2, "grouped by project");
    let row = "document.querySelector('#runs [data-row=sft]')";
    assert_eq!(browser.eval(&format!("{row}.querySelector('a').innerText")), "<b>sft</b>");
    // One GPU is busy for 40 %, the other for 90 %.
    browser.until(&format!("/^6\\d %$/.test({row}.querySelector('td.use').innerText)"));
    browser.until(&format!("{row}.querySelector('.spark path.line')"));
    browser.screenshot("runs-dark");
    let type_in = |text: &str| {
        browser.eval(&format!(
            "(f => {{ f.value = {text:?}; f.dispatchEvent(new Event('input', {{bubbles: true}})) }})(document.querySelector('#filter'))"
        ));
    };
    type_in("project:images");
    browser.until(
        "document.querySelectorAll('#runs tr[data-row]:not(.group)').length === 1 && !document.querySelector('#runs [data-row=sft]')",
    );
    type_in("");
    browser.click("[data-states^=running]");
    browser.until(
        "document.querySelectorAll('#runs tr[data-row]:not(.group)').length === 1 && document.querySelector('#runs [data-row=sft]')",
    );
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('state')"), "running,suspended");

    // The run's own page.
    browser.click("#runs [data-row=sft] a");
    browser.until("document.querySelector('.run-head[data-state=running]')");
    browser.until("document.querySelector('[data-measure=gpu]')?.dataset.lines === '2'");
    browser.until("document.querySelectorAll('.rank-lanes [data-rank]').length === 2");
    browser.until("/^6\\d(\\.\\d)?$/.test(document.querySelector('[data-figure=mean] b').innerText)");
    assert_eq!(browser.eval("document.querySelector('[data-figure=energy] .note').innerText"), "not counted");
    browser.screenshot("run-dark");
    browser
        .until("[...document.querySelectorAll('[data-measure] .u')].some(u => u.innerText.startsWith('GiB; 2 ranks'))");
    // The report is a document of its own.
    let report = browser.eval("new URL(document.querySelector('[data-do=report]').href).pathname");
    let report = bench.server.get(report.as_str().expect("an address"), &[]);
    assert!(report.status == 200 && report.body.contains("&lt;b&gt;sft&lt;/b&gt;"), "{}", report.status);
    let second = run["processes"].as_array().expect("a list").iter().find(|one| one["rank"]["rank"] == 1);
    let pid = second.and_then(|one| one["pid"].as_i64()).expect("its number");
    // SAFETY: it is a process of this test that was not waited for yet.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) }, 0);
    job.wait().expect("it ended");
    browser.until("document.querySelector('.run-head[data-state=failed]')");
    // A more exact end may be reported a moment later. The page follows.
    let over = until("the page says what is told", || {
        let over = bench.run("sft", "its end", |run| run["state"] == "failed");
        let said = over["sentence"].as_str().expect("a sentence").replacen('f', "F", 1);
        (browser.eval("document.querySelector('.run-head .how b').innerText") == said).then_some(over)
    });
    // Kernels before 6.15 report that a rank ended, but not how.
    if over["cause"]["rank"] == 1 {
        browser.until("document.querySelector('.rank-lanes [data-cause]')?.dataset.rank === '1'");
    }
    browser.eval("history.back()");
    browser.until("document.querySelector('#runs')");
    no_faults(&browser);

    // A run without GPUs has no empty figures of GPUs.
    let browser = open(&bench, "?page=run&run=other");
    browser.until("document.querySelector('[data-figure=lasted] .value')?.innerText.trim()");
    let figures = "[...document.querySelectorAll('[data-figure]')].map(e => e.dataset.figure)";
    browser.until(&format!("document.querySelector('.run-head[data-state=finished]') && {figures}.length"));
    for id in ["gpu_hours", "energy", "mean", "idle", "memory", "coverage"] {
        assert_eq!(browser.eval(&format!("{figures}.includes({id:?})")), false, "{id}");
    }
    no_faults(&browser);

    // Side by side with another run.
    let browser = open(&bench, "?page=run&run=sft&run=other");
    browser.until("document.querySelectorAll('.key [data-run]').length === 2");
    browser.until("document.querySelectorAll('.differs tbody tr').length >= 5");
    browser.until("document.querySelector('[data-measure=cpu] canvas')");
    browser.screenshot("runs-compare-dark");
    // Aligned by the clock: the address contains it, and Back returns to alignment by start.
    let pressed = "document.querySelector('[data-do=align][aria-pressed=true]')?.innerText";
    assert_eq!(browser.eval(pressed), "from start");
    let picture = "document.querySelector('[data-measure=cpu] canvas').toDataURL()";
    let before = browser.eval(picture);
    browser.click("[data-do=align][aria-pressed=false]");
    browser.until(&format!("{pressed} === 'by time' && {picture} !== {before}"));
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('align')"), "clock");
    browser.eval("history.back()");
    browser.until(&format!("{pressed} === 'from start'"));
    no_faults(&browser);
}

#[test]
fn a_page_without_runs_says_how_one_begins_and_one_that_is_not_there_that_it_is_not() {
    let server = Server::start(["--collectors", "cpu"]);
    let browser = Browser::start();
    browser.open(&format!("{}?page=runs", server.url));
    browser.until("document.querySelector('.empty code')?.innerText.includes('watchglass run --')");
    browser.open(&format!("{}?page=run&run=gone", server.url));
    browser.until("document.querySelector('.run-page .wrong')?.innerText.includes('there is no run')");
}

#[test]
fn what_a_job_printed_stands_below_its_charts_as_text_in_its_own_colors() {
    let bench = Bench::start();
    let script = "echo '<b>first</b>'; printf '\\033[31mred\\033[0m end\\n'; echo 'ValueError: <i>wrong</i>' >&2; sleep 2; exit 1";
    bench.job(&["--logs", "--id", "loud", "--name", "loud", "--", "sh", "-c", script]).wait().expect("it ended");
    bench.run("loud", "its end", |run| run["cause"]["line"] == "ValueError: <i>wrong</i>");
    let browser = open(&bench, "?page=run&run=loud");
    browser.until("document.querySelectorAll('[data-logs] [data-line]').length === 3");
    browser.until("document.querySelector('[data-logs] .c1').textContent === 'red'");
    browser.until("document.querySelector('[data-words]').textContent === 'ValueError: <i>wrong</i>'");
    let lines = "[...document.querySelectorAll('[data-logs] pre')].map(line => line.textContent)";
    let texts = browser.eval(lines);
    assert!(
        texts.as_array().is_some_and(|all| all.contains(&"<b>first</b>".into()) && all.contains(&"red end".into())),
        "{texts}"
    );
    assert_eq!(browser.eval("document.querySelectorAll('[data-logs] pre :is(i, script)').length"), 0);
    // A click on a line sets the crosshair there, and the line is marked.
    browser.click("[data-logs] [data-stream=err] time");
    browser.until("document.querySelector('[data-near]') !== null");
    let choose = |what: &str, value: &str| {
        let script = format!(
            "const field = document.querySelector('[data-logs] [aria-label={what}]'); field.value = '{value}'; \
             field.dispatchEvent(new Event('change')); return true"
        );
        browser.script(&script);
    };
    choose("Stream", "err");
    browser.until(&format!("{lines}.join() === 'ValueError: <i>wrong</i>'"));
    choose("Stream", "");
    choose("Text", "RED");
    browser.until(&format!("{lines}.join() === 'red end'"));
    choose("Text", "nothing of it");
    browser.until("document.querySelectorAll('[data-logs] [data-line]').length === 0");
    choose("Text", "");
    browser.until("document.querySelectorAll('[data-logs] [data-line]').length === 3");
    no_faults(&browser);
    // A job without kept output has no such panel.
    bench.job(&["--id", "quiet", "--", "sh", "-c", "echo x; sleep 1"]).wait().expect("it ended");
    bench.run("quiet", "its end", |run| !run["ended"].is_null());
    browser.open(&format!("{}?page=run&run=quiet", bench.server.url));
    browser.until("document.querySelector('.run-head') !== null");
    assert_eq!(browser.eval("document.querySelector('[data-logs]')"), Value::Null);
}

#[test]
fn keys_lead_from_marker_to_marker_of_a_job() {
    let bench = Bench::start();
    bench.job(&["--id", "marked", "--", "sleep", "2"]).wait().expect("it ran");
    let run = bench.run("marked", "its end", |run| !run["ended"].is_null());
    let began = run["began"].as_f64().expect("a time");
    let marker = |text: &str, after: f64| json!({"text": text, "kind": "epoch", "run": "marked", "t": began + after});
    let body = json!({"markers": [marker("epoch 1", 0.4), marker("epoch 2", 1.2)]}).to_string();
    let host = bench.server.addr();
    let lines = format!(
        "POST /api/v1/markers HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    let answer = ask_with(host, &lines, &body);
    assert!(matches!(answer.status, 200 | 201), "{}: {}", answer.status, answer.body);
    let browser = open(&bench, "?page=run&run=marked");
    browser.until("document.querySelectorAll('.markers li').length === 2");
    let said = |what: &str| format!("document.getElementById('said').innerText.startsWith({what:?})");
    for (key, mark) in [(")", "epoch 1, "), (")", "epoch 2, "), (")", "epoch 2, "), ("(", "epoch 1, ")] {
        browser.press(key);
        browser.until(&said(mark));
    }
    no_faults(&browser);
}
