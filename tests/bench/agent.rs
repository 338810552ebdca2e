//! Measures the cost of an agent's connection compared with a server alone, and the speed at which a hub fetches 12
//! hours of one machine. Both use the real programs on loopback.

use crate::cost::{cpu_of, intern};
use crate::history::{Keeping, RETENTION, START, rss};
use crate::links;
use crate::record::{COLUMN, Recording};
use crate::table::Table;
use std::path::Path;
use std::time::{Duration, Instant};
use watchglass_tests::agent::{self, Agent};
use watchglass_tests::certificate::Authority;
use watchglass_tests::hub::people;
use watchglass_tests::server::{Server, watchglass};

/// Warm-up before the measurement, and its duration.
const SETTLING: Duration = Duration::from_secs(15);
const MEASURED: Duration = Duration::from_secs(120);
/// Maximum time of a fetch. A longer one has failed.
const MAX_FETCH: Duration = Duration::from_secs(180);

/// Measures all figures of this file.
pub fn measure(table: &mut Table, procfs: &Recording) {
    let rows = ["CPU of an agent over serve alone, a minute", "... its memory over that"];
    match beside() {
        Ok([alone, agent]) => {
            let on = format!(
                "{:.3} s and {:.1} MiB, serve {:.3} s and {:.1} MiB, side by side for {} s; TLS",
                agent.cpu,
                agent.mib,
                alone.cpu,
                alone.mib,
                MEASURED.as_secs()
            );
            table.at_most(rows[0], agent.cpu - alone.cpu, "s", 0.01, "0.01 s", "", &on);
            table.at_most(rows[1], agent.mib - alone.mib, "MiB", 3.0, "3 MiB", "vmagent 12 MiB in all", &on);
        }
        Err(why) => rows.into_iter().zip(["0.01 s", "3 MiB"]).for_each(|(row, goal)| table.missing(row, goal, &why)),
    }
    let row = "12 h of one machine, fetched";
    if procfs.ticks.len() < COLUMN {
        return table.missing(
            row,
            "10 s",
            &format!("needs a longer recording: cargo xtask bench -- --record {COLUMN}"),
        );
    }
    match fetched(procfs) {
        Ok(fetched) => {
            let on = format!(
                "{} series, {:.1} MB; CPU of the hub {:.1} s, of the agent {:.1} s",
                procfs.steps.len(),
                fetched.bytes / 1e6,
                fetched.cpu[0],
                fetched.cpu[1]
            );
            table.at_most(row, fetched.seconds, "s", 10.0, "10 s", "", &on);
        }
        Err(why) => table.missing(row, "10 s", &why),
    }
}

/// Cost of a process.
struct Cost {
    /// CPU seconds per minute.
    cpu: f64,
    mib: f64,
}

/// Cost of a server alone, and of an agent with its connection, at the same time on the same machine.
fn beside() -> Result<[Cost; 2], String> {
    let temp = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (data, authority) = (temp.path().join("hub"), Authority::new());
    std::fs::create_dir(&data).map_err(|error| error.to_string())?;
    let (certificate, ca) = (authority.sign("localhost", temp.path()), authority.write(temp.path()));
    let keys = people(&data);
    let (_hub, address) = links::start(&data, &certificate)?;
    let mut alone = watchglass(["serve", "--port", "0", "--data-dir"]);
    alone.arg(temp.path().join("alone"));
    let alone = Server::start_as_it_is(alone);
    let url = format!("https://localhost:{}", address.port());
    let mut agent = agent::command(&url, &keys["join"], &temp.path().join("agent"));
    agent.arg("--ca").arg(ca);
    let agent = Agent::start(agent);
    agent.says("connected to");
    std::thread::sleep(SETTLING);
    let both = [alone.id().to_string(), agent.id().to_string()];
    let before = both.each_ref().map(|process| cpu_of(process));
    let begun = Instant::now();
    std::thread::sleep(MEASURED);
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    let cost = |n: usize| {
        let cpu = cpu_of(&both[n]).checked_sub(before[n]).ok_or("a program has ended")?;
        Ok::<_, String>(Cost { cpu: cpu.as_secs_f64() / minutes, mib: rss(&both[n]).ok_or("a program has ended")? })
    };
    Ok([cost(0)?, cost(1)?])
}

/// Figures of a fetch.
struct Fetched {
    /// Seconds from the start of the agent.
    seconds: f64,
    bytes: f64,
    /// CPU seconds of the hub and of the agent.
    cpu: [f64; 2],
}

/// Fetch by an empty hub from an agent that has 12 hours.
fn fetched(procfs: &Recording) -> Result<Fetched, String> {
    let temp = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (data, folder) = (temp.path().join("hub"), temp.path().join("agent"));
    std::fs::create_dir(&data).map_err(|error| error.to_string())?;
    let ticks = RETENTION / 1_000;
    sampled(&folder, procfs, ticks)?;
    let keys = people(&data);
    // Both have a longer retention than the samples need, so that none of them expires meanwhile.
    let mut hub = watchglass(["hub", "--no-local", "--port", "0", "--retention", "48h", "--data-dir"]);
    hub.arg(&data);
    let hub = Server::start_as_it_is(hub);
    let key = format!("Authorization: Bearer {}", keys["metrics"]);
    let counted = |name: &str| {
        let begin = format!("watchglass_ingest_{name}_total ");
        let answer = hub.get("/metrics", &[&key]).body;
        let line = answer.lines().find_map(|line| line.strip_prefix(&begin)?.parse::<f64>().ok());
        line.ok_or_else(|| format!("no {begin}in /metrics"))
    };
    let mut command = agent::command(&format!("http://{}", hub.addr()), &keys["join"], &folder);
    command.args(["--spool", "48h", "--collectors", "cpu"]);
    let begun = Instant::now();
    let agent = Agent::start(command);
    // Ticks that are sampled meanwhile are not counted.
    while counted("ticks")? < ticks as f64 + begun.elapsed().as_secs_f64().floor() {
        if begun.elapsed() > MAX_FETCH {
            return Err(format!("{} of {ticks} ticks came; the agent said:\n{}", counted("ticks")?, agent.output()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = [hub.id(), agent.id()].map(|process| cpu_of(&process.to_string()).as_secs_f64());
    Ok(Fetched { seconds, bytes: counted("fill_bytes")?, cpu })
}

/// Makes the folder of an agent that has this many ticks of this machine.
fn sampled(folder: &Path, procfs: &Recording, ticks: i64) -> Result<(), String> {
    let name = collectors::host_name().unwrap_or_else(|| "this machine".into());
    let mut kept = Keeping::open(folder, &name);
    {
        let mut store = kept.live.store();
        intern(&mut store, kept.source, procfs);
        store.begin_life(kept.source, *START);
    }
    let samples = kept.feed(procfs, ticks);
    if samples > 0 { Ok(()) } else { Err("the recording is empty".into()) }
}
