//! The usage of a team, from the sample to the CSV table.

use super::sockets::open;
use shared::answer::usage::{GpuTime, GpuTimeBy};
use shared::audit::{Usage, UsageRow};
use watchglass_tests::hub::{Hub, send};
use watchglass_tests::server::watchglass;
use watchglass_tests::waiting::until_so;

/// Output of a command.
fn output_of(folder: &std::path::Path, args: &[&str]) -> String {
    let mut command = watchglass(args.iter().copied());
    let output = command.arg("--data-dir").arg(folder).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn rows(text: &str) -> Vec<UsageRow> {
    serde_json::from_str::<Usage>(text).expect("what was used").usage
}

/// The sum of a value over all days.
fn sum<'a>(rows: impl IntoIterator<Item = &'a UsageRow>, measure: &str) -> f64 {
    rows.into_iter().filter_map(|row| row.values.get(measure)).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_machines_programs_and_viewers_use_is_written_down_when_a_hub_ends() {
    // The hub measures its own machine, so that there is usage to count.
    let hub = Hub::start([]);
    let sampled = || hub.send("GET", "/api/v1/query?tag=memory_percent&from=-1h", &[&hub.key("data")], "");
    until_so("there are samples", || sampled().body.contains("\"points\":[["));
    let questions = (0..7).map(|_| sampled()).filter(|answer| answer.status == 200).count() as f64;
    let refused = hub.send("GET", "/api/v1/usage?team=main", &[&hub.cookie("vera")], "");
    assert_eq!(refused.status, 403, "what a team uses is for its members");
    let wrong = hub.send("GET", "/api/v1/usage?team=main&by=person", &[&hub.cookie("ada")], "");
    assert_eq!((wrong.status, wrong.error().as_str()), (400, "by is day, source or key, not \"person\""));
    let metrics = hub.send("GET", "/metrics", &[&hub.key("metrics")], "").body;
    assert!(metrics.contains("\nwatchglass_usage_rows_left_out_total 0\n"), "it says that nothing was left out");
    drop(open(&hub, "", &[hub.cookie("mike"), hub.origin()]).await);

    let Hub { server, folder, keys, .. } = hub;
    let folder = folder.path();
    assert!(server.end().success());
    let all = rows(&output_of(folder, &["usage", "--data", "--json"]));
    assert!(all.iter().all(|row| row.kind == "day" && row.subject.is_empty() && row.team == "main"), "{all:?}");
    let machines = rows(&output_of(folder, &["usage", "--data", "--by", "source", "--json"]));
    let programs = rows(&output_of(folder, &["usage", "--data", "--by", "key", "--json"]));
    assert!(sum(&all, "samples") > 0.0 && sum(&all, "series") > 0.0, "{all:?}");
    assert_eq!(sum(&all, "samples"), sum(&machines, "samples"), "{all:?} {machines:?}");
    assert_eq!(machines.iter().filter(|row| row.subject == row.name).count(), machines.len(), "this machine alone");
    let data: Vec<&UsageRow> = programs.iter().filter(|row| row.name == "data").collect();
    let id = keys["data"].split('_').nth(2).expect("an id");
    assert!(data.iter().all(|row| row.subject == id), "{data:?} {id}");
    assert!(sum(data.iter().copied(), "queries") >= questions && sum(data, "bytes_out") > 1_000.0, "{programs:?}");
    assert!(sum(&all, "viewers_peak") >= 1.0 && sum(&all, "viewer_hours") > 0.0, "{all:?}");

    // As a CSV table, and from the restarted hub.
    let csv = output_of(folder, &["usage", "--data", "--by", "source", "--csv"]);
    let mut lines = csv.lines();
    assert!(lines.next().is_some_and(|heads| heads.starts_with("day,team,kind,subject,name,samples,")), "{csv}");
    assert_eq!(lines.count(), machines.len(), "{csv}");
    let again = Hub::server(folder, ["--no-local"]);
    let own = format!("Authorization: Bearer {}", keys["own"]);
    let answer = send(&again, "GET", "/api/v1/usage?by=source&format=csv", &[&own], "");
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/csv; charset=utf-8"));
    assert_eq!(answer.body, csv);
}

#[test]
fn gpu_time_is_for_members_and_a_limit_is_set_by_the_admins_of_the_team() {
    let hub = Hub::start(["--no-local"]);
    let asked = |who: &str, rest: &str| {
        hub.send("GET", &format!("/api/v1/usage/runs?team=main{rest}"), &[&hub.cookie(who)], "")
    };
    assert_eq!(asked("vera", "").status, 403, "the GPU time of a team is for its members");
    let wrong = asked("ada", "&by=person");
    assert_eq!((wrong.status, wrong.error().contains("by is day, month, project, user or run")), (400, true));
    assert_eq!(asked("mike", "&from=-401d").status, 400, "runs are kept for 400 days");
    let none: GpuTime = serde_json::from_str(&asked("mike", "&by=month").body).expect("GPU time");
    assert_eq!((none.by, none.total.gpu_hours.0, none.limit), (GpuTimeBy::Month, 0.0, None));
    let months = ["", "&from=-29d", "&from=-89d", "&from=-364d"];
    for from in months.map(|span| asked("mike", &format!("&by=month{span}")).body) {
        let of: GpuTime = serde_json::from_str(&from).expect("GPU time");
        assert!(of.from.ends_with("-01"), "a month is whole: {}", of.from);
    }

    let folder = hub.folder.path();
    let limit = || serde_json::from_str::<GpuTime>(&asked("mike", "").body).expect("GPU time").limit;
    output_of(folder, &["team", "set", "gpu_hours=1000", "--team", "main"]);
    let set = limit().expect("a limit");
    assert_eq!((set.limit, set.used.0), (1_000, 0.0));
    output_of(folder, &["team", "set", "gpu_hours=0", "--team", "main"]);
    assert_eq!(limit(), None);
    let patch = |who: &str, hours: &str| {
        let headers = [hub.cookie(who), hub.origin(), "Content-Type: application/json".to_string()];
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        hub.send("PATCH", "/api/v1/teams/main", &headers, &format!("{{\"gpu_hours\": {hours}}}")).status
    };
    assert_eq!(
        [patch("mike", "5"), patch("ada", "5"), patch("ada", "1000000001"), patch("ada", "-1")],
        [403, 200, 400, 400]
    );

    let csv = output_of(folder, &["usage", "--by", "project", "--csv"]);
    assert!(csv.starts_with("project,name,runs,gpu_hours,") && csv.lines().count() == 1, "{csv}");
    let table = output_of(folder, &["usage", "--by", "user"]);
    assert!(table.contains("GPU-HOURS") && table.contains("total"), "{table}");
    for args in [["usage", "--by", "source"], ["usage", "--by", "project"]] {
        let data: &[&str] = if args[2] == "project" { &["--data"] } else { &[] };
        let mut command = watchglass(args.iter().copied().chain(data.iter().copied()));
        let output = command.arg("--data-dir").arg(folder).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
