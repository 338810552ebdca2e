//! Measures the cost of a cluster: two real hubs over the real NATS and PostgreSQL, and agents of the protocol alone,
//! all connected to the first hub. The second hub shows all of them in its overview.

use crate::cost::cpu_of;
use crate::history::rss;
use crate::links::Linked;
use crate::table::Table;
use std::time::{Duration, Instant};
use watchglass_tests::cluster::Cluster;
use watchglass_tests::hub::machines_of;
use watchglass_tests::programs::found;

/// Machines of the goal.
const MACHINES: usize = 1_000;
/// Warm-up: progress is written to the database every 15 s, and the full state is gossiped every 10 s.
const SETTLING: Duration = Duration::from_secs(30);
/// Duration of the measurement: four periods of 15 s.
const MEASURED: Duration = Duration::from_secs(60);

/// Measures all figures with this many machines, by default a thousand.
pub fn measure(table: &mut Table, machines: Option<usize>) {
    let rows = [
        "CPU of the hub of a cluster that has all links",
        "... its memory",
        "... over NATS, from both hubs, a second",
        "... transactions of PostgreSQL, a second",
    ];
    let machines = machines.unwrap_or(MACHINES);
    let figures = match found("nats-server") {
        None => Err("nats-server is not on PATH".to_string()),
        Some(_) => figures(machines),
    };
    match figures {
        Ok(Figures { cpu, mib, nats, transactions, ticks }) => {
            let on = format!("{machines} x 500 series, without TLS, {ticks:.0} ticks a second, its sender included");
            table.at_most(rows[0], cpu, "% of a core", 30.0, "30 %", "", &on);
            table.at_most(rows[1], mib, "MiB", 1_024.0, "1 GiB", "", &on);
            table.at_most(
                rows[2],
                nats / 1_000.0,
                "kB",
                100.0,
                "100 kB",
                "",
                "the overview of all; nobody looks at one",
            );
            table.at_most(rows[3], transactions, "", 100.0, "100", "", "of both hubs: leases, links, what was sent");
        }
        Err(why) => rows.into_iter().for_each(|row| table.missing(row, "", &why)),
    }
}

struct Figures {
    /// CPU of the hub with the connections, percent of a core.
    cpu: f64,
    mib: f64,
    /// Bytes per second.
    nats: f64,
    transactions: f64,
    ticks: f64,
}

/// A row of a hub's metrics.
fn row(cluster: &Cluster, hub: usize, name: &str) -> Result<f64, String> {
    let begin = format!("watchglass_cluster_{name} ");
    let said = cluster.metrics(hub);
    let line = said.lines().find_map(|line| line.strip_prefix(&begin)?.parse().ok());
    line.ok_or_else(|| format!("no {begin}in /metrics of hub {hub}"))
}

fn figures(machines: usize) -> Result<Figures, String> {
    let cluster = Cluster::start(2);
    let temp = tempfile::tempdir().map_err(|error| error.to_string())?;
    let keys = machines_of(cluster.database(), &cluster.keys["join"], machines);
    let list = temp.path().join("keys");
    std::fs::write(&list, keys.join("\n")).map_err(|error| error.to_string())?;
    let process = cluster.hub(0).id().to_string();
    let mut agents = Linked::start(cluster.hub(0).addr(), &list, None)?;
    std::thread::sleep(SETTLING);
    let told = || Ok::<_, String>(row(&cluster, 0, "sent_bytes_total")? + row(&cluster, 1, "sent_bytes_total")?);
    let changed = || {
        let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'hub'";
        cluster.postgresql.sql("hub", sql).parse::<f64>().map_err(|error| error.to_string())
    };
    let (since, before) = (Instant::now(), (agents.ticks()?, told()?, changed()?, cpu_of(&process)));
    std::thread::sleep(MEASURED);
    let (seconds, after) = (since.elapsed().as_secs_f64(), (agents.ticks()?, told()?, changed()?, cpu_of(&process)));
    let a_second = |before: f64, after: f64| (after - before) / seconds;
    Ok(Figures {
        cpu: (after.3 - before.3).as_secs_f64() / seconds * 100.0,
        mib: rss(&process).ok_or("the hub has ended")?,
        nats: a_second(before.1, after.1),
        // The second read is a transaction itself.
        transactions: a_second(before.2, after.2 - 1.0),
        ticks: a_second(before.0 as f64, after.0 as f64),
    })
}
