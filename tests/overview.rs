//! The overview of a fleet, on a page's stream and over time in the API.

use serde_json::Value;
use shared::catalog::fleet::{EACH_TEMP, FleetRow, GPU_BUSY, GPU_TEMP, Grain, STATE, place, rows};
use shared::tick::{Applied, TickState};
use shared::wire::{Cell, IndexEntry, PROTOCOL, PageMessage, Received, ServerMessage, decode_server};
use watchglass_tests::server::{Server, watchglass};
use watchglass_tests::stream::Connection;
use watchglass_tests::waiting::MAX_WAIT;

fn demo(gpus: &str, hosts: &str) -> Server {
    let mut command = watchglass(["demo", "--gpus", gpus, "--hosts", hosts, "--port", "0"]);
    command.args(["--retention", "10m"]);
    Server::start_command(command)
}

/// State of one overview on a page that shows the fleet.
#[derive(Default)]
struct Fleet {
    index: Vec<IndexEntry>,
    cells: Vec<Cell>,
    state: TickState,
    beats: usize,
    messages: u32,
}

impl Fleet {
    async fn take(&mut self, connection: &mut Connection) {
        let bytes = connection.next().await.expect("the stream goes on");
        match decode_server(&bytes).expect("a message") {
            Received::Control(ServerMessage::Sources(all)) => self.index = all,
            Received::Control(ServerMessage::Cells { grain, first, cells, left_out, .. }) => {
                assert_eq!((first as usize, left_out), (self.cells.len(), 0));
                let steps = cells.iter().flat_map(|_| rows(grain)).map(|row| row.steps);
                self.state.extend(steps.collect::<Vec<_>>());
                self.cells.extend(cells);
            }
            Received::Control(ServerMessage::Goodbye { reason }) => panic!("{reason}"),
            Received::Control(_) => {}
            Received::Ticks(..) => panic!("no machine was opened"),
            Received::Overview(_, frames) => {
                for frame in frames {
                    let applied = self.state.apply(frame).expect("it follows");
                    self.beats += usize::from(matches!(applied, Applied::Tick { .. }));
                }
                self.messages += 1;
                connection.send_message(&PageMessage::Ack { messages: self.messages }).await;
            }
        }
    }

    /// The values of a row, cell by cell.
    fn row(&self, grain: Grain, row: &FleetRow) -> Vec<f64> {
        let (at, width) = (place(grain, row).expect("a row of it"), rows(grain).len());
        self.state.values().iter().skip(at).step_by(width).copied().collect()
    }
}

/// Follows one overview until the condition holds.
async fn follow(server: &Server, grain: Grain, done: impl Fn(&Fleet) -> bool) -> Fleet {
    let all = async {
        let mut connection = Connection::to(&format!("ws://{}/api/v1/live", server.addr())).await;
        let open = PageMessage::Open { protocol: PROTOCOL, window: 60_000, resume: None, sources: Vec::new() };
        connection.send_message(&open).await;
        connection.send_message(&PageMessage::Overview { grain, on: true }).await;
        let mut fleet = Fleet::default();
        while !done(&fleet) {
            fleet.take(&mut connection).await;
        }
        fleet
    };
    tokio::time::timeout(MAX_WAIT, all).await.expect("the page is shown it in time")
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

#[test]
fn a_page_that_shows_the_fleet_is_sent_a_cell_a_machine_and_no_machine() {
    let server = demo("2", "12");
    block_on(async {
        let full = |fleet: &Fleet| fleet.row(Grain::Sources, &GPU_BUSY).iter().filter(|v| v.is_finite()).count() >= 11;
        let fleet = follow(&server, Grain::Sources, |fleet| fleet.beats >= 3 && full(fleet)).await;
        assert_eq!(fleet.index.len(), 12);
        let numbers: Vec<_> = fleet.index.iter().map(|entry| Some(entry.id)).collect();
        assert_eq!(fleet.cells.iter().map(|cell| cell.source).collect::<Vec<_>>(), numbers);
        let hottest = fleet.row(Grain::Sources, &GPU_TEMP);
        assert!(hottest.iter().filter(|v| (20.0..110.0).contains(*v)).count() >= 11, "{hottest:?}");
        assert!(hottest.iter().all(|v| v.is_nan() || v.fract() == 0.0), "what a cell shows: {hottest:?}");
        assert!(fleet.row(Grain::Sources, &STATE).iter().all(|v| v.is_finite()));
    });
}

#[test]
fn each_gpu_of_a_fleet_has_a_cell() {
    let server = demo("4", "3");
    block_on(async {
        let temps = |fleet: &Fleet| fleet.row(Grain::Gpus, &EACH_TEMP).iter().filter(|v| v.is_finite()).count();
        let fleet = follow(&server, Grain::Gpus, |fleet| fleet.beats >= 2 && temps(fleet) >= 11).await;
        // A machine may have lost one of its GPUs by now.
        assert!((11..=12).contains(&fleet.cells.len()), "{:?}", fleet.cells);
        assert!(fleet.cells.iter().all(|cell| "0123".contains(&cell.instance) && cell.source < Some(3)));
    });
}

#[test]
fn a_row_of_the_fleet_is_answered_over_time() {
    let server = demo("2", "3");
    server.wait_for_past();
    let json = |path: &str| -> Value { serde_json::from_str(&server.get(path, &[]).body).expect("JSON") };
    for (row, unit) in [("gpu", "%"), ("network.in", "B/s")] {
        let answer = json(&format!("/api/v1/fleet?row={row}&from=-8m&step=1m"));
        assert_eq!((&answer["step"], &answer["whole"]), (&Value::from(60), &Value::from(true)), "{answer}");
        let sources = answer["sources"].as_array().expect("sources");
        assert_eq!(sources.len(), 3);
        for source in sources {
            let values = source["values"].as_array().expect("values");
            assert_eq!(values.len() as u64, answer["count"].as_u64().expect("a count"));
            assert!(values.iter().filter(|v| v.is_number()).count() >= 4, "{row} in {unit}: {source}");
        }
    }
    let one = json("/api/v1/fleet?row=cpu&source=demo-02");
    assert_eq!(one["sources"][0]["name"], "demo-02");
    for (question, word) in [
        ("row=gpus", "gpu.temp"),
        ("from=-1h", "a row is missing"),
        ("row=gpu&from=-30d&step=1s", "step="),
        ("row=gpu&source=nobody", "nobody"),
        ("row=gpu&host=x", "host"),
    ] {
        let refused = server.get(&format!("/api/v1/fleet?{question}"), &[]);
        let status = if word == "nobody" { 404 } else { 400 };
        assert!(refused.status == status && refused.body.contains(word), "{question}: {}", refused.body);
    }
}
