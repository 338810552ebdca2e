//! Rows of many machines in one table: a machine's own rows change nothing for others, and no machine takes them all.

use super::*;
use shared::catalog::{Chart, Metric};
use shared::scope::Scope;
use stream::live::Reader;

const ROGUE: &str = "roguerogueroguerogueroguero";

async fn linked(hub: &Hub, key: &str) -> Agent {
    let mut agent = hub.connect(key);
    agent.send_message(&AgentMessage::Hello(Box::new(hello(1)))).await;
    assert!(matches!(agent.receive_message().await, HubMessage::Welcome(_)));
    agent
}

/// Sends a row with its chart, and a sample of it.
async fn tells(agent: &mut Agent, (id, seq): (u32, u64), row: &Metric, chart: &Chart) {
    let at = u16::try_from(id).expect("a position");
    agent.send_message(&AgentMessage::Rows { rows: vec![(at, row.clone())], charts: vec![chart.clone()] }).await;
    agent.series(&[(id, SeriesDef { metric: at, instance: "k".into() }, row.steps)]).await;
    let values: Vec<f64> = (0..=id).map(|one| if one == id { 1.0 } else { f64::NAN }).collect();
    agent.tick(seq, seq as i64 * 1_000, &values).await;
    agent.clock(0).await;
}

/// The rows that a machine's series name, except that of its clock, with their charts.
fn rows_of(hub: &Hub, key: &str) -> Vec<(Metric, Chart)> {
    let store = hub.live.store();
    let catalog = store.catalog();
    let series = store.series(store.named(key).expect("it is known"), 0);
    let rows = series.iter().filter_map(|def| catalog.metric(def)).filter(|row| row.tag.starts_with("own."));
    let chart = |row: &Metric| catalog.layout.charts.iter().find(|chart| chart.id == row.chart).cloned();
    rows.map(|row| (row.clone(), chart(row).expect("it is drawn"))).collect()
}

fn chart(title: &str) -> Chart {
    Chart { id: "own".into(), title: title.into(), section: "s".into() }
}

/// The scope of a reader of one machine.
fn reader(hub: &Hub, key: &str) -> Reader {
    Reader::new(hub.live.clone(), Scope::only(["t".to_owned()], [key.to_owned()]))
}

#[tokio::test(start_paused = true)]
async fn what_a_machine_says_of_a_tag_first_is_not_what_another_means_by_it() {
    let hub = Hub::new();
    let (mut rogue, mut agent) = (linked(&hub, ROGUE).await, linked(&hub, KEY).await);
    let own = row("own.{x}.level");
    let odd = Metric { title: "Owned".into(), help: "Pay here.".into(), label: "owned".into(), ..own.clone() };
    tells(&mut rogue, (0, 5), &odd, &chart("Owned")).await;
    tells(&mut agent, (0, 5), &own, &chart("Level")).await;
    let told = rows_of(&hub, KEY);
    assert_eq!(told.len(), 1);
    let (title, help, drawn) = (&told[0].0.title, &told[0].0.help, &told[0].1.title);
    assert_eq!((&title[..], help, &drawn[..]), ("Own", &own.help, "Level"));
    // An identical definition uses the same row; a different one gets its own row.
    tells(&mut rogue, (1, 6), &Metric { tag: "own.{x}.more".into(), ..own.clone() }, &chart("Level")).await;
    tells(&mut agent, (1, 6), &Metric { tag: "own.{x}.more".into(), ..own.clone() }, &chart("Level")).await;
    assert_eq!(rows_of(&hub, KEY)[1], rows_of(&hub, ROGUE)[1]);
    let before = rows_of(&hub, KEY);
    rogue.cut().await;
    let mut rogue = linked(&hub, ROGUE).await;
    let more = Metric { tag: "own.{x}.more".into(), unit: Unit::Celsius, ..odd.clone() };
    tells(&mut rogue, (1, 7), &more, &chart("Owned")).await;
    assert_eq!(rows_of(&hub, KEY), before);
    // A machine whose text has changed keeps its row.
    let rows = hub.live.store().catalog().metrics.len();
    agent.cut().await;
    let mut agent = linked(&hub, KEY).await;
    tells(&mut agent, (0, 7), &Metric { help: "Other words.".into(), ..own }, &chart("Level")).await;
    assert_eq!((rows_of(&hub, KEY), hub.live.store().catalog().metrics.len()), (before, rows));
}

#[tokio::test(start_paused = true)]
async fn the_table_of_who_sees_some_machines_has_no_row_of_others() {
    let hub = Hub::new();
    let (mut other, mut agent) = (linked(&hub, ROGUE).await, linked(&hub, KEY).await);
    tells(&mut other, (0, 5), &row("own.{x}.secret"), &Chart { id: "secret".into(), ..chart("Secret") }).await;
    tells(&mut agent, (0, 5), &row("own.{x}.level"), &chart("Level")).await;
    let all = hub.live.store().catalog().clone();
    let seen = reader(&hub, KEY).catalog();
    assert_eq!(all.metrics.len(), seen.metrics.len(), "positions mean the same");
    assert!(seen.metrics.iter().any(|row| row.tag == "own.{x}.level"));
    let said = format!("{seen:?}");
    assert!(!said.to_lowercase().contains("secret"), "{said}");
    assert!(seen.find("own.k.secret").is_err_and(|why| !why.nearest.is_empty() && !why.nearest.contains("secret")));
    assert!(seen.find("").is_err());
    assert!(reader(&hub, ROGUE).catalog().find("own.k.secret").is_ok());
    let everything = Reader::new(hub.live.clone(), Scope::All).catalog();
    assert!(Arc::ptr_eq(&everything, hub.live.store().catalog()));
    // A link without a chart has none of its rows, nor one of a chart that has its ID with a number.
    let without = Scope::only(["t".to_owned()], [KEY.to_owned()]).without_charts(["own".to_owned()]);
    let said = format!("{:?}", Reader::new(hub.live.clone(), without.clone()).catalog());
    assert!(!said.contains("own.{x}.level"), "{said}");
    assert!(without.hides("own~2") && !without.hides("own~x"));
}

#[tokio::test(start_paused = true)]
async fn machines_that_take_all_rows_they_can_leave_some_to_the_next() {
    let hub = Hub::new();
    for machine in 0..12 {
        let mut rogue = linked(&hub, &format!("{machine:026}")).await;
        for part in 0..20 {
            let row = |n: u16| Metric { tag: format!("own.{machine}.{n}.{{x}}"), ..row("own.{x}") };
            let rows = (part * 100..(part + 1) * 100).map(|n| (n, row(n))).collect();
            rogue.send_message(&AgentMessage::Rows { rows, charts: vec![chart("Own")] }).await;
        }
        rogue.clock(0).await;
    }
    let refused = hub.refused("rows");
    assert!(refused > 1_000, "{refused} rows are left out");
    let mut agent = linked(&hub, KEY).await;
    for n in 0..60 {
        let row = Metric { tag: format!("own.mine.{n}.{{x}}"), ..row("own.{x}") };
        tells(&mut agent, (n, 5 + u64::from(n)), &row, &chart("Own")).await;
    }
    assert_eq!((rows_of(&hub, KEY).len(), hub.refused("rows")), (60, refused));
}
