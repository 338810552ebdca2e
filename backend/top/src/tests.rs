//! The picture as text, in several sizes, with and without colors and signs.

use crate::board;
use crate::fit;
use crate::follow::whole;
use crate::keys::{self, Effect};
use crate::model::{Model, Over};
use crate::palette::{Depth, Palette, Signs};
use crate::pointer;
use crate::text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use shared::catalog::{Catalog, VOCABULARY, cpu, disk, gpu, memory, network};
use shared::connection_state::ConnectionState;
use shared::processes::{Process, ProcessTable};
use shared::run::{RunLine, RunState};
use shared::series::SeriesDef;
use shared::tick::TickState;
use shared::wire::{self, Hello, PageMessage, ServerMessage, Source};
use std::time::Duration;

const START: i64 = 1_795_219_200_000;
const UTF: Palette = Palette { depth: Depth::None, signs: Signs::Braille, light: false };
const ASCII: Palette = Palette { depth: Depth::None, signs: Signs::Ascii, light: false };
const GIB: f64 = (1u64 << 30) as f64;

/// A machine with this number of GPUs, of which number 3 lags, after this number of seconds.
fn machine(gpus: u32, seconds: i64) -> Model {
    let catalog = Catalog::new(VOCABULARY.iter().flat_map(|rows| rows.iter().copied()));
    let mut defs = Vec::new();
    let mut values: Vec<Box<dyn Fn(i64) -> f64>> = Vec::new();
    let mut add = |tag: &str, instance: String, value: Box<dyn Fn(i64) -> f64>| {
        let metric = catalog.position(tag).unwrap_or_else(|| panic!("no row {tag}"));
        defs.push(SeriesDef { metric, instance });
        values.push(value);
    };
    for i in 0..gpus {
        let wave = move |s: i64| f64::from(((s + i64::from(i) * 7) % 12) as i32) / 4.0;
        let base = if i == 3 { 70.0 } else { 96.0 };
        let own = || i.to_string();
        add(gpu::UTILIZATION.tag, own(), Box::new(move |s| base + wave(s)));
        add(gpu::MEMORY_ALLOCATED_BYTES.tag, own(), Box::new(move |s| (60.0 + wave(s)) * GIB));
        add(gpu::MEMORY_TOTAL_BYTES.tag, own(), Box::new(|_| 80.0 * GIB));
        add(gpu::POWER_WATTS.tag, own(), Box::new(move |s| 600.0 + wave(s) * 20.0));
        add(gpu::TEMP.tag, own(), Box::new(move |s| 61.0 + wave(s)));
    }
    let none = String::new;
    add(cpu::CPU_PERCENT.tag, none(), Box::new(|s| 20.0 + (s % 10) as f64));
    for i in 0..2 {
        add(cpu::CORE_PERCENT.tag, i.to_string(), Box::new(move |s| 15.0 + ((s + i) % 20) as f64));
    }
    add(memory::USED.tag, none(), Box::new(|_| 212.0 * GIB));
    add(memory::TOTAL.tag, none(), Box::new(|_| 512.0 * GIB));
    add(disk::READ.tag, none(), Box::new(|s| s as f64 * 3.0));
    add(disk::WRITTEN.tag, none(), Box::new(|s| s as f64));
    add(network::RECEIVED.tag, none(), Box::new(|s| s as f64 * 2e6));
    let mut model = Model::new(None, String::new());
    model.open();
    let mut take = |bytes: Vec<u8>| model.take(&bytes).expect("it is understood");
    let say = |message: ServerMessage| wire::encode(&message);
    take(say(ServerMessage::Hello(Hello {
        protocol: wire::PROTOCOL,
        version: "0.1.0".into(),
        boot: 1,
        now: START,
        retention: 43_200_000,
        simulated: false,
        recorded: None,
        accounts: false,
    })));
    let mut state = TickState::default();
    state.extend(defs.iter().map(|def| catalog.metrics[usize::from(def.metric)].steps));
    take(say(ServerMessage::Catalog(catalog)));
    let source = Source::new(0, "node-7".into(), 1_000, Vec::new());
    take(say(ServerMessage::Sources(vec![source.entry(ConnectionState::Live, START, Vec::new())])));
    let facts = [("os", "Linux 6.1"), ("cpu", "AMD EPYC 9654"), ("cores", "2"), ("gpu", "NVIDIA H100 80GB HBM3")];
    let facts = facts.map(|(key, value)| (key.to_string(), value.to_string())).to_vec();
    take(say(ServerMessage::Series { source: 0, first: 0, defs }));
    take(say(ServerMessage::Facts { source: 0, facts }));
    take(say(ServerMessage::HistoryEnd { source: 0, from: START, to: i64::MAX, more: false }));
    take(wire::encode_ticks(0, [&state.keyframe()[..]]));
    for s in 0..seconds {
        let now: Vec<f64> = values.iter().map(|value| value(s)).collect();
        let frame = state.encode(START + s * 1_000, false, &now);
        take(wire::encode_ticks(0, [&frame[..]]));
    }
    take(say(ServerMessage::HistoryEnd { source: 0, from: START - 300_000, to: i64::MAX, more: false }));
    let process = |pid: u32, name: &str, cpu: f32, gpu: Option<u64>| Process {
        pid,
        parent: if pid > 4_000 { 4_000 } else { 1 },
        user: "mara".into(),
        name: name.into(),
        cpu: Some(cpu),
        rss: 3 << 30,
        threads: 12,
        gpu_memory: gpu,
        ..Process::default()
    };
    let mut rows = vec![process(4_000, "torchrun", 0.4, None)];
    rows.extend((0..gpus.min(8)).map(|i| process(4_100 + i, "python3", 99.0 - i as f32, Some(60 << 30))));
    let table = ProcessTable { t: START + seconds * 1_000, total: 412, whole: true, rows };
    take(say(ServerMessage::Processes(table)));
    model
}

fn picture(model: &mut Model, palette: Palette, width: u16, height: u16) -> Vec<String> {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    board::draw(model, palette, charts::axis::Zone::UTC, area, &mut buffer);
    (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>()).collect()
}

fn press(model: &mut Model, keys: &str) -> Effect {
    let mut last = Effect::Draw;
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '←' => KeyCode::Left,
            '→' => KeyCode::Right,
            '↓' => KeyCode::Down,
            '\u{1b}' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        last = keys::press(model, KeyEvent::new(code, KeyModifiers::NONE));
    }
    last
}

/// Whether a line is the row of a device. Those of this machine are far above half of their axis.
fn is_device(line: &str) -> bool {
    line.starts_with("GPU ") && line.contains(['▆', '▇', '█'])
}

#[test]
fn what_matters_stands_on_a_small_screen() {
    let mut model = machine(8, 120);
    let lines = picture(&mut model, UTF, 80, 24);
    if std::env::var_os("SHOW").is_some() {
        println!("{}", lines.join("\n"));
    }
    assert!(
        lines[0].starts_with("node-7 Linux 6.1") && lines[0].trim_end().ends_with("● live 5m 00:01:59"),
        "{}",
        lines[0]
    );
    let text = lines.join("\n");
    for part in [
        "GPU utilization",
        "GPU memory",
        "GPU power",
        "Host CPU",
        "▲ GPU 3 at",
        "of 640 GiB",
        "python3",
        "PID",
        "GPU MEM",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let devices: Vec<&String> = lines.iter().filter(|line| is_device(line)).collect();
    let ends: Vec<usize> = devices.iter().map(|line| line.trim_end().chars().count()).collect();
    assert_eq!((devices.len(), ends.iter().all(|end| *end == ends[0])), (8, true), "{text}");
}

#[test]
fn every_size_is_filled_and_nothing_leaves_it() {
    for (gpus, palette) in [(0, UTF), (1, ASCII), (8, UTF), (12, ASCII)] {
        let mut model = machine(gpus, 60);
        for (width, height) in [(80, 24), (120, 40), (300, 80), (40, 10), (53, 17), (30, 5), (80, 12)] {
            for keys in ["", "z", "zp", "p?", "\u{1b}/mem", "\u{1b}g", "\u{1b}←←", "1 "] {
                press(&mut model, keys);
                let lines = picture(&mut model, palette, width, height);
                let text = lines.join("\n");
                assert!(
                    palette.signs != Signs::Ascii || text.is_ascii(),
                    "{gpus} GPUs {width}x{height} {keys:?}:\n{text}"
                );
            }
            if std::env::var_os("SHOW").is_some() && [(120, 40), (80, 24), (300, 80)].contains(&(width, height)) {
                println!("{}", picture(&mut model, palette, width, height).join("\n"));
            }
        }
    }
}

#[test]
fn above_eight_devices_each_that_has_room_is_a_row_and_the_one_that_lags_is_among_them() {
    let mut model = machine(64, 120);
    let text = picture(&mut model, UTF, 120, 40).join("\n");
    assert!(text.contains("GPU 3 ") && text.contains("of 64 furthest from the median"), "{text}");
    assert!(text.contains("Processes"));
    assert_eq!(press(&mut model, "z"), Effect::Draw);
    let text = picture(&mut model, UTF, 120, 80).join("\n");
    assert_eq!(text.lines().filter(|line| is_device(line)).count(), 64, "{text}");
}

#[test]
fn one_picture_waits_for_its_answers_and_not_for_good() {
    let mut model = machine(8, 9);
    let (soon, late) = (Duration::from_secs(1), Duration::from_secs(20));
    assert!(!whole(&model, 9, soon) && whole(&model, 9, late), "runs were not told");
    model.runs = Some(Vec::new());
    assert!(whole(&model, 2, soon));
    model.processes.rows.clear();
    assert!(!whole(&model, 2, soon) && whole(&model, 9, soon), "a machine may tell of no process");
}

#[test]
fn before_the_first_sample_no_time_stands_still() {
    let mut model = machine(8, 0);
    assert_eq!(model.newest(), 0);
    for keys in [" ", "←", "[", "+", "-"] {
        press(&mut model, keys);
        assert_eq!((model.view.frozen, model.view.crosshair), (None, None), "{keys}");
        assert_eq!(model.view.note, "there are no samples yet", "{keys}");
    }
}

#[test]
fn keys_are_those_of_the_page() {
    let mut model = machine(8, 400);
    press(&mut model, "1");
    assert_eq!(model.view.window, 60_000);
    press(&mut model, " ");
    let span = model.view.frozen.expect("time stands still");
    press(&mut model, "←←");
    assert_eq!(model.view.crosshair, Some(span.1 - 2_000));
    press(&mut model, "[");
    assert_eq!(model.span(), (span.0 - 30_000, span.1 - 30_000));
    press(&mut model, "\u{1b}");
    assert_eq!((model.view.frozen, model.view.crosshair), (None, None));
    press(&mut model, "?");
    assert_eq!(model.view.over, Over::Help(0));
    assert!(picture(&mut model, UTF, 100, 40).join("\n").contains("half a window back or forward"));
    press(&mut model, "\u{1b}/temper\n");
    assert_eq!(model.view.over, Over::Nothing);
    press(&mut model, "/torch\n");
    assert_eq!(model.view.words, "torch");
    press(&mut model, "c");
    assert!(model.view.note.contains("in the page"));
    assert_eq!(press(&mut model, "q"), Effect::Quit);
}

#[test]
fn the_crosshair_shows_the_values_of_its_instant() {
    let mut model = machine(0, 120);
    press(&mut model, " ←");
    let at = model.view.crosshair.expect("there is one");
    assert_eq!((at - START) / 1_000, 118);
    let text = picture(&mut model, UTF, 120, 40).join("\n");
    assert!(text.contains("28"), "CPU was at 20 + 118 % 10:\n{text}");
}

#[test]
fn a_tree_shows_children_below_their_parent_and_a_filter_leaves_out_the_others() {
    let mut model = machine(8, 30);
    press(&mut model, "ep");
    let lines = picture(&mut model, UTF, 120, 40);
    let at =
        |word: &str| lines.iter().position(|line| line.contains(word)).unwrap_or_else(|| panic!("{word}: {lines:#?}"));
    assert!(at("torchrun") < at("  python3"));
    press(&mut model, "\u{1b}e/4103\n");
    let text = picture(&mut model, UTF, 120, 40).join("\n");
    assert!(text.contains("1 of 412, with 4103") && !text.contains("4104"), "{text}");
}

#[test]
fn a_tree_is_folded_by_keys_and_says_what_is_in_a_fold() {
    let mut model = machine(8, 30);
    // The parent uses least by itself, but most as a tree.
    press(&mut model, "e");
    let text = picture(&mut model, UTF, 120, 40).join("\n");
    assert!(text.contains("▾ torchrun") && text.contains("←→ fold"), "{text}");
    press(&mut model, "←");
    let text = picture(&mut model, UTF, 120, 40).join("\n");
    assert!(text.contains("▸ torchrun (9)") && !text.contains("python3"), "{text}");
    press(&mut model, "→↓↓");
    assert_eq!(model.view.chosen.map(|(pid, _)| pid), Some(4_101));
    press(&mut model, "←");
    assert_eq!(model.view.chosen.map(|(pid, _)| pid), Some(4_000), "what cannot be folded leads to its parent");
    press(&mut model, "F");
    assert_eq!(model.view.note, "all processes are folded");
    assert_eq!(model.listed.len(), 1);
    press(&mut model, "\n");
    assert_eq!(model.listed.len(), 9);
    let text = picture(&mut model, ASCII, 120, 40).join("\n");
    assert!(text.contains("- torchrun"), "{text}");
    press(&mut model, "\u{1b}←");
    assert!(model.view.chosen.is_none() && model.view.crosshair.is_some(), "arrows are the charts' again");
}

#[test]
fn who_is_chosen_stays_chosen_and_is_seen() {
    let mut model = machine(8, 30);
    press(&mut model, "jjjjjjjj");
    assert_eq!(model.view.chosen, Some((4_107, 7)));
    let text = picture(&mut model, UTF, 120, 16).join("\n");
    assert!(text.contains("4107") && !text.contains("4100"), "{text}");
    press(&mut model, "S");
    assert_eq!(model.view.chosen, Some((4_107, 1)), "the order is another, the process the same");
    // When it has ended, its neighbor is selected.
    let rows = model.processes.rows.iter().filter(|row| row.pid != 4_107).cloned().collect();
    let table = ProcessTable { rows, ..model.processes.clone() };
    model.take(&wire::encode(&ServerMessage::Processes(table))).expect("it is understood");
    assert_eq!(model.view.chosen, Some((4_106, 1)));
    press(&mut model, "/nobody\n");
    assert_eq!(model.view.chosen, None, "there is none");
}

#[test]
fn the_mouse_chooses_folds_leafs_and_reads_values() {
    let mut model = machine(8, 400);
    press(&mut model, "e\u{1b}");
    let lines = picture(&mut model, UTF, 120, 40);
    let mouse = |model: &mut Model, kind, (column, row): (usize, usize)| {
        let (column, row) = (column as u16, row as u16);
        pointer::point(model, MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
    };
    let row = |lines: &[String], word: &str| lines.iter().position(|line| line.contains(word)).expect("it is shown");
    let click = MouseEventKind::Down(MouseButton::Left);
    mouse(&mut model, click, (30, row(&lines, "torchrun")));
    assert_eq!(model.view.chosen.map(|(pid, _)| pid), Some(4_000));
    mouse(&mut model, click, (30, row(&lines, "torchrun")));
    assert_eq!(model.listed.len(), 1, "the second click folds it");
    press(&mut model, "e");
    let lines = picture(&mut model, UTF, 120, 20);
    mouse(&mut model, MouseEventKind::ScrollDown, (30, row(&lines, "PID")));
    assert_eq!(model.view.first, 3);
    let lines = picture(&mut model, UTF, 120, 40);
    let chart = row(&lines, "GPU power W");
    let (at, rect) = model.places.plots[1];
    assert_eq!((usize::from(rect.y), model.view.crosshair), (chart + 1, None));
    mouse(&mut model, click, (usize::from(rect.x), chart + 2));
    assert_eq!((model.view.focus, model.view.crosshair), (at, Some(model.span().0)));
    mouse(&mut model, MouseEventKind::ScrollUp, (usize::from(rect.x), chart + 2));
    assert_eq!(model.view.focus, at - 1);
    assert_eq!(mouse(&mut model, MouseEventKind::Moved, (1, 1)), Effect::Nothing);
    press(&mut model, "?");
    mouse(&mut model, MouseEventKind::ScrollDown, (1, 1));
    assert_eq!(model.view.over, Over::Help(1));
}

fn run(id: &str, state: RunState, sentence: &str, ended: Option<i64>) -> RunLine {
    RunLine { id: id.into(), state, sentence: sentence.into(), began: START - 3_600_000, ended, ..RunLine::default() }
}

#[test]
fn runs_stand_above_the_charts_while_there_are_any() {
    let mut model = machine(8, 120);
    let without = picture(&mut model, UTF, 120, 40);
    let held = RunLine {
        name: Some("lr\u{1b}[31m-3e-4".into()),
        ranks: 8,
        gpu_hours: Some(8.04),
        gpu_utilization: Some(93.4),
        ..run("abc", RunState::Running, "running", None)
    };
    let fell = run("fell", RunState::OutOfMemory, "out of memory (Kubernetes: OOMKilled)", Some(START + 60_000));
    let mut runs = vec![held, fell];
    let tell = |model: &mut Model, runs: &[RunLine]| {
        model.take(&wire::encode(&ServerMessage::Runs(runs.to_vec()))).expect("it is understood");
    };
    tell(&mut model, &runs);
    let lines = picture(&mut model, UTF, 120, 40);
    let first = lines.iter().position(|line| line.starts_with("● ")).expect("a run");
    assert_eq!(lines[first].trim_end(), "● lr?[31m-3e-4  1 h 1 min  8 ranks  8.0 GPU h  93 % used  running");
    let second = "■ fell  1 h 1 min  out of memory (Kubernetes: OOMKilled)  59 s ago";
    assert_eq!(lines[first + 1].trim_end(), second);
    assert!(lines.join("\n").contains("Processes"), "the rest is there, too");
    let narrow = picture(&mut model, UTF, 40, 24);
    let told = narrow.iter().find(|line| line.starts_with("● ")).expect("a run");
    assert_eq!(told.trim_end(), "● lr?[31m-3e-4  1 h 1 min  8 ranks…", "no figure is cut");
    // Many runs leave room for the rest of the picture.
    runs.extend((0..7).map(|n| run(&format!("more-{n}"), RunState::Running, "running", None)));
    tell(&mut model, &runs);
    let lines = picture(&mut model, ASCII, 80, 24);
    assert!(
        lines.iter().any(|line| line.starts_with("* more-1 ") && line.trim_end().ends_with("+5 more")),
        "{lines:#?}"
    );
    assert!(lines.iter().any(|line| line.starts_with("# fell ")) && lines.join("").is_ascii(), "{lines:#?}");
    let all = text::lines(&mut model, ASCII, 0, 100, 20);
    assert_eq!(all.lines().filter(|line| line.starts_with("* ") || line.starts_with("# ")).count(), 9, "{all}");
    let object = text::json(&mut model);
    assert_eq!((&object["runs"][1]["state"], &object["runs"][0]["ranks"]), (&"out_of_memory".into(), &8.into()));
    assert!(object["runs"][0]["ended"].is_null() && object["runs"][1]["gpu_hours"].is_null(), "absent is never zero");
    tell(&mut model, &[]);
    assert_eq!(picture(&mut model, UTF, 120, 40), without, "they take no room where there are none");
}

#[test]
fn runs_are_asked_for_as_time_passes_and_again_with_another_machine() {
    let mut model = machine(1, 30);
    let asks = |model: &mut Model| model.questions().contains(&PageMessage::Runs);
    assert!(!asks(&mut model), "they were asked for with the first values");
    model.unsent();
    assert!(asks(&mut model) && !asks(&mut model));
    model.take(&wire::encode(&ServerMessage::Runs(vec![run("a", RunState::Running, "running", None)]))).expect("taken");
    model.switch("other".into());
    assert_eq!(model.runs, None, "those of the other machine");
}

#[test]
fn what_is_wrong_is_said_in_a_line_of_its_own() {
    let mut model = machine(8, 30);
    model.delivery = crate::model::Delivery::Lost("the server has closed the connection".into());
    let lines = picture(&mut model, UTF, 80, 24);
    assert!(lines[1].starts_with("▲ disconnected: the server has closed the connection"), "{}", lines[1]);
    assert!(lines[0].trim_end().ends_with("disconnected"));
}

#[test]
fn one_picture_is_lines_and_an_object() {
    let mut model = machine(8, 120);
    let lines = text::lines(&mut model, ASCII, 0, 100, 20);
    assert!(
        lines.is_ascii() && lines.contains("GPU utilization (mean of 8):") && lines.contains("torchrun"),
        "{lines}"
    );
    assert_eq!(lines.lines().filter(|line| line.starts_with("GPU 3 ")).count(), 1, "{lines}");
    let object = text::json(&mut model);
    assert_eq!(object["source"], "node-7");
    assert_eq!(object["values"][gpu::TEMP.tag_of("0")]["unit"], "celsius");
    assert_eq!(object["tiles"][0]["unit"], "percent");
    assert_eq!(object["processes"][0]["pid"], 4_100);
}

#[test]
fn a_line_of_json_has_nothing_in_it_that_a_terminal_obeys() {
    let mut model = machine(8, 120);
    let wild = "a\u{1b}[2J\u{7f}\u{80}\u{9b}31m\u{9f}\u{202e}gpj\u{2066}\u{feff}é";
    model.listed[0].process.name = wild.into();
    let line = text::json_line(&mut model);
    assert!(!line.contains(shared::controls::is_active), "{line}");
    let object: serde_json::Value = serde_json::from_str(&line).expect("JSON on one line");
    assert_eq!(object["processes"][0]["name"], wild, "whoever reads it has the name as it is");
}

#[test]
fn a_machine_that_is_not_there_is_told_with_those_that_are() {
    let mut model = Model::new(Some("node-9".into()), String::new());
    let index =
        vec![Source::new(0, "node-7".into(), 1_000, Vec::new()).entry(ConnectionState::Live, START, Vec::new())];
    let error = model.take(&wire::encode(&ServerMessage::Sources(index))).expect_err("there is none");
    assert!(error.contains("node-9") && error.contains("node-7"), "{error}");
    assert!(model.take(&[9, 9]).expect_err("no message").contains("another version"));
}

#[test]
fn a_span_that_is_not_there_is_asked_for_once() {
    let mut model = machine(1, 30);
    press(&mut model, "4");
    let asked = |model: &mut Model| {
        let all = model.questions();
        all.iter().filter(|question| matches!(question, PageMessage::History { .. })).count()
    };
    assert_eq!((asked(&mut model), asked(&mut model)), (1, 0));
}

#[test]
fn a_part_that_failed_and_questions_without_room_are_told() {
    let mut model = machine(2, 60);
    let before = board::trouble(&model);
    model.unsent();
    let asked = model.questions();
    assert!(asked.iter().any(|question| matches!(question, PageMessage::Processes { .. })), "it is asked again");
    let told = board::trouble(&model).unwrap_or_default();
    assert!(before.is_some() || told.contains("dropped requests: 1"), "{told}");
    model.failed = Some(crate::screen::sentence(Some("cpu"), Some("index out of bounds\nat")));
    let told = board::trouble(&model).unwrap_or_default();
    assert!(told.ends_with("a part of this program failed (cpu): index out of bounds; its values stop"), "{told}");
}

#[test]
fn the_list_of_keys_is_read_to_its_end_on_a_small_screen() {
    let mut model = machine(2, 60);
    press(&mut model, "?");
    let text = picture(&mut model, UTF, 80, 24).join("\n");
    assert!(text.contains("more by ↓") && !text.contains("PgUp PgDn"), "{text}");
    for _ in 0..100 {
        press(&mut model, "j");
    }
    let text = picture(&mut model, UTF, 80, 24).join("\n");
    assert!(text.contains("PgUp PgDn") && matches!(model.view.over, Over::Help(_)), "{text}");
    press(&mut model, "k");
    let text = picture(&mut model, UTF, 80, 24).join("\n");
    assert!(!text.contains("PgUp PgDn"), "one line back is one line back: {text}");
    press(&mut model, "\u{1b}");
    assert_eq!(model.view.over, Over::Nothing);
}

#[test]
fn a_narrow_table_leaves_out_whole_columns_the_least_needed_first() {
    let mut model = machine(8, 30);
    for (i, row) in model.processes.rows.iter_mut().enumerate() {
        (row.gpus, row.state, row.read) = (vec![i as u32], Some('R'), Some(1_048_576.0));
        row.started = Some(model.processes.t - 3_720_000);
    }
    press(&mut model, "p");
    let head = |model: &mut Model, width: u16| {
        let lines = picture(model, UTF, width, 24);
        let at = lines.iter().position(|line| line.contains("CPU %")).expect("a head");
        (lines[at].clone(), lines[at + 1].clone())
    };
    let (titles, row) = head(&mut model, 120);
    let all = ["PID", "USER", "GPU", "S", "CPU %↓", "MEM", "GPU MEM", "DISK", "THR", "TIME", "NAME"];
    let mut rest = titles.as_str();
    for title in all {
        let (_, after) = rest.split_once(title).unwrap_or_else(|| panic!("{title}: {titles}"));
        rest = after;
    }
    assert!(row.contains("1 h 2 min") && row.contains(" R ") && row.contains("1.05 MB/s"), "{row}");
    for (width, there, gone) in
        [(80, &["GPU MEM", "USER", " S "][..], &["THR", "DISK"][..]), (40, &["PID", "CPU %", "MEM"], &["USER", "GPU"])]
    {
        let (titles, row) = head(&mut model, width);
        assert!(there.iter().all(|word| titles.contains(word)), "{titles}");
        assert!(!gone.iter().any(|word| titles.contains(word)), "{titles}");
        assert!(row.contains("python3"), "the name has room: {row}");
    }
}

#[test]
fn a_process_has_its_command_line_where_arguments_are_shown() {
    let mut model = machine(8, 30);
    model.processes.rows[1].args = "/usr/bin/python3.11 -u train.py --lr 1e-4".into();
    model.processes.rows[2].args = "python3 loader.py".into();
    model.processes.rows[2].name = "pt_data_worker".into();
    press(&mut model, "p");
    let text = picture(&mut model, UTF, 120, 24).join("\n");
    assert!(text.contains("COMMAND") && text.contains(" /usr/bin/python3.11 -u train.py --lr 1e-4"), "{text}");
    assert!(text.contains("pt_data_worker: python3 loader.py"), "{text}");
}

#[test]
fn all_cores_stand_in_one_line_of_a_small_screen() {
    let mut model = machine(8, 30);
    let lines = picture(&mut model, UTF, 80, 24);
    // Core 0 is at 24 %, core 1 at 25 %.
    assert!(lines.iter().any(|line| line.trim_end() == "cores ▃▃"), "{lines:#?}");
    let lines = picture(&mut model, ASCII, 80, 24);
    assert!(lines.iter().any(|line| line.trim_end() == "cores --"), "{lines:#?}");
    assert!(!picture(&mut machine(0, 30), UTF, 80, 24).iter().any(|line| line.starts_with("cores ")), "they have rows");
}

#[test]
fn the_key_of_findings_answers() {
    let mut model = machine(8, 30);
    press(&mut model, "f");
    assert!(model.view.note.contains("watchglass findings"), "{}", model.view.note);
    assert!(model.view.listing.tree.is_none());
}

#[test]
fn a_figure_is_never_cut() {
    let of = |room: usize| fit::figure(&["5.27".into(), "of 5.6 kW".into()], room).concat();
    assert_eq!([of(14), of(13), of(7), of(6), of(3)], ["5.27 of 5.6 kW", "5.27 kW", "5.27 kW", "5.27", "…"]);
}

#[test]
fn a_note_without_room_ends_with_a_word() {
    assert_eq!(fit::shortened("fullest: GPU 0, 95 %", 18), "fullest: GPU 0…");
    assert_eq!(fit::shortened("min: GPU 3, 95 %", 18), "min: GPU 3, 95 %");
    assert_eq!(fit::shortened("8 ranks  12.3 GPU h", 13), "8 ranks…");
}
