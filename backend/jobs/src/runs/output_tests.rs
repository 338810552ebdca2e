//! Files as launchers write them, and the rows that are read from them.

use super::*;
use shared::run::Rank;

fn line(t: i64, n: u64, text: &str) -> OutputLine {
    OutputLine { t, n, text: text.into(), ..OutputLine::default() }
}

fn write(folder: &Path, name: &str, rows: &[OutputLine], torn: &str) {
    fs::create_dir_all(folder).expect("a folder");
    let rows: String = rows.iter().map(|row| serde_json::to_string(row).expect("JSON") + "\n").collect();
    fs::write(folder.join(name), rows + torn).expect("written");
}

fn open(folder: &Path) -> RunLogs {
    RunLogs::open(folder, 3)
}

fn texts(rows: impl IntoIterator<Item = PrintedRow>) -> Vec<String> {
    let one = |row: PrintedRow| match row.line.lost {
        0 => row.line.text,
        lost => format!("({lost})"),
    };
    rows.into_iter().map(one).collect()
}

const NOW: i64 = 1_000_000_000;
const ALL: (i64, i64) = (i64::MIN, i64::MAX);

#[test]
fn lines_of_processes_are_one_row_and_what_is_missing_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join(FOLDER).join("run");
    write(&run, "5-7.0000.jsonl", &[line(10, 3, "c"), line(20, 4, "d")], "{\"t\":21,\"n\":5,\"s\":\"ou");
    let lost = OutputLine { lost: 2, ..line(35, 8, "") };
    write(&run, "5-7.0001.jsonl", &[line(30, 6, "f"), lost, line(40, 9, "i")], "");
    write(&run, "6-8.0000.jsonl", &[line(15, 1, "x"), line(40, 2, "y")], "no row\n");
    write(&run, "notes.txt", &[], "other");
    let logs = open(folder.path());
    assert_eq!(logs.source(), Some(3));
    assert_eq!(texts(logs.behind("run", ALL, &BTreeMap::new())), ["(2)", "c", "x", "d", "(1)", "f", "(2)", "i", "y"]);
    assert_eq!(texts(logs.behind("run", (15, 30), &BTreeMap::new())), ["x", "d", "(1)", "f"]);
    let newest = |span, limit| texts(logs.newest("run", span, limit, &|_| true));
    assert_eq!(newest(ALL, 3), ["(2)", "i", "y"]);
    assert_eq!(newest(ALL, 100), ["c", "x", "d", "f", "(2)", "i", "y"], "before the first of a file nothing is known");
    assert_eq!(newest((0, 20), 2), ["x", "d"]);
    let only = logs.newest("run", ALL, 9, &|row| row.process == (6, 8));
    assert_eq!(texts(only.into_iter().filter(|row| row.line.lost == 0)), ["x", "y"]);
    for none in ["other", "..", "../run", ""] {
        assert_eq!(texts(logs.behind(none, ALL, &BTreeMap::new())), [""; 0], "{none}");
        assert_eq!(texts(logs.newest(none, ALL, 9, &|_| true)), [""; 0], "{none}");
    }
    assert_eq!(texts(RunLogs::default().newest("run", ALL, 9, &|_| true)), [""; 0]);
}

#[test]
fn the_newest_lines_of_a_long_file_are_read_from_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: Vec<OutputLine> =
        (1..=20_000).map(|n| line(n, n as u64, &format!("line {n} {}", "x".repeat(90)))).collect();
    write(&folder.path().join(FOLDER).join("run"), "5-7.0000.jsonl", &rows, "");
    let logs = open(folder.path());
    let numbers = |rows: Vec<PrintedRow>| rows.iter().map(|row| row.line.n).collect::<Vec<_>>();
    assert_eq!(numbers(logs.newest("run", ALL, 3, &|_| true)), [19_998, 19_999, 20_000]);
    assert_eq!(numbers(logs.newest("run", (0, 7), 3, &|_| true)), [5, 6, 7], "the whole file is read where it must be");
    assert_eq!(numbers(logs.newest("run", ALL, 9, &|row| row.line.n % 9_000 == 0)), [9_000, 18_000]);
    assert_eq!(logs.behind("run", ALL, &BTreeMap::new()).count(), 20_000);
}

fn rank(rank: u32, local: Option<u32>) -> Option<Rank> {
    Some(Rank { rank, local, ..Rank::default() })
}

fn run() -> Run {
    let process = |source: &str, began, pid, rank| RunProcess {
        source: source.into(),
        began,
        pid,
        rank,
        ..RunProcess::default()
    };
    let processes = vec![
        process("here", 5, 7, None),
        process("here", 6, 8, rank(2, Some(0))),
        process("here", 6, 9, rank(3, Some(1))),
        process("there", 6, 8, rank(0, Some(0))),
    ];
    Run { id: "run".into(), processes, ..Run::default() }
}

#[test]
fn a_line_is_of_the_rank_that_its_launcher_names_where_there_is_such_a_rank() {
    let ranks = Ranks::from_run(&run(), "here");
    let of = |process, text: &str| ranks.of_row(&PrintedRow { process, line: line(1, 1, text) });
    for (text, rank) in [
        ("[rank3]: Traceback", Some(3)),
        ("[rank0]: of the other machine", Some(0)),
        ("[rank9]: nobody", None),
        ("[default1]: x", Some(3)),
        ("2: x", Some(2)),
        ("17: x", None),
        ("2x: y", None),
        ("[a b3]: y", None),
        ("plain", None),
    ] {
        assert_eq!(of((5, 7), text), rank, "{text}");
    }
    assert_eq!((of((6, 9), "plain"), of((6, 9), "[rank2]: x")), (Some(3), Some(2)));
}

#[test]
fn the_last_lines_of_each_rank_are_kept_when_the_others_have_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join(FOLDER).join("run");
    // One rank fails early, and the other goes on.
    let mut rows = vec![line(1, 1, "[rank2]: ValueError: early"), line(2, 2, "of nobody")];
    rows.extend((3..=350).map(|n| line(n, n as u64, &format!("[rank3]: step {n}"))));
    write(&own, "5-7.0000.jsonl", &rows[250..], "");
    let logs = open(folder.path());
    logs.keep_last(&run(), "here").expect("written");
    let kept = |logs: &RunLogs| texts(logs.newest("run", ALL, 1_000, &|_| true));
    assert_eq!(kept(&logs).len(), 100);
    write(&own, "5-7.0000.jsonl", &rows, "");
    logs.keep_last(&run(), "here").expect("written");
    fs::remove_dir_all(&own).expect("removed");
    let all = kept(&logs);
    assert_eq!((all.len(), all[0].as_str(), all[1].as_str()), (102, "[rank2]: ValueError: early", "of nobody"));
    assert_eq!(texts(logs.behind("run", ALL, &BTreeMap::new())), all);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let file = last_file(&folder.path().join(ENDED), "run");
        assert_eq!(file.metadata().expect("there").mode() & 0o777, 0o600);
    }
    // A run that printed nothing has no file.
    logs.keep_last(&Run { id: "quiet".into(), ..Run::default() }, "here").expect("nothing to do");
    assert_eq!(fs::read_dir(folder.path().join(ENDED)).expect("there").count(), 1);
}

#[test]
fn lines_go_with_the_samples_and_the_oldest_of_too_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join(FOLDER);
    for (run, age) in [("old", 10_000), ("new", 10), ("newest", 1)] {
        write(&own.join(run), "5-7.0000.jsonl", &[line(1, 1, &"x".repeat(900))], "");
        let file = File::options().append(true).open(own.join(run).join("5-7.0000.jsonl")).expect("there");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age)).expect("its time");
    }
    let logs = open(folder.path());
    let there = || ["old", "new", "newest"].map(|run| own.join(run).join("5-7.0000.jsonl").exists());
    logs.expire((NOW, 2 * 3_600_000), u64::MAX);
    assert_eq!(there(), [true, true, true]);
    logs.expire((NOW, 3_600_000), u64::MAX);
    assert_eq!(there(), [false, true, true]);
    logs.expire((NOW, 3_600_000), 1_500);
    assert_eq!(there(), [false, false, true]);
    RunLogs::default().expire((0, 0), 0);
}

#[test]
fn the_line_that_names_the_error_is_quoted() {
    let of = |texts: &[&str]| {
        let row = |text: &&str| PrintedRow { process: (5, 7), line: line(1, 1, text) };
        let failed = How { exit: Some(1), ..How::default() };
        last_words(&failed, &texts.iter().map(row).collect::<Vec<_>>())
    };
    let trace =
        ["[rank3]: Traceback", "\u{1b}[31m[rank3]: torch.OutOfMemoryError: CUDA out of memory\u{1b}[0m", "bye", " "];
    assert_eq!(of(&trace[..1]).as_deref(), Some("Traceback"));
    assert_eq!(of(&trace).as_deref(), Some("torch.OutOfMemoryError: CUDA out of memory"));
    assert_eq!(of(&["KeyError", "step 3"]).as_deref(), Some("KeyError"));
    assert_eq!(of(&["Errors: 0", "thread 'main' panicked at x"]).as_deref(), Some("thread 'main' panicked at x"));
    let later = ["OSError: [Errno 28] No space left on device", "ValueError: no checkpoint", "bye"];
    assert_eq!(of(&later).as_deref(), Some(later[0]), "the line that says so, not the last error");
    assert_eq!(of(&[&"é".repeat(150)]).map(|text| text.len()), Some(MAX_QUOTED_BYTES));
    assert_eq!(of(&[]), None);
}
