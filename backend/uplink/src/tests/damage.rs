//! History that an agent sends from its disk: the last tick before a kill, and a block with a wrong byte.

use super::*;
use shared::agent::Offer;
use std::path::Path;
use stream::testing::bench::{self, Bench, T0};

/// Result of a request: samples by series and sequence, and the reported damage.
type Fetched = (BTreeMap<u32, BTreeMap<u64, f64>>, Option<FillDamage>);

async fn fetched<S: road::Wire>(link: &mut HubLink<S>, id: u32, first: u64, last: u64) -> Fetched {
    link.send_message(&HubMessage::Want { id, first, last }).await;
    let (mut all, mut damage): Fetched = Default::default();
    loop {
        match link.next().await {
            ReceivedMessage::Fill(part) => {
                let ticks = part.ticks().expect("bounded");
                for (id, bytes) in &part.columns {
                    let column = column::decode(&bytes.0, ticks).expect("a column");
                    all.entry(*id).or_default().extend((part.first..=part.last).zip(column));
                }
            }
            ReceivedMessage::Damage(said) => damage = Some(said),
            ReceivedMessage::Control(AgentMessage::FillEnd { state, .. }) => {
                assert_eq!(state, FillState::Whole);
                return (all, damage);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn connect_agent(bench: &Bench, hub: SocketAddr) -> Agent {
    Agent::of_live(bench.live.clone(), HubEntry::parse(&format!("http://{hub}")).expect("a hub"), None)
}

/// Changes a byte in the middle of these bytes in the file that contains them.
fn damage(folder: &Path, bytes: &[u8]) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let mut file = std::fs::read(entry.path()).expect("a file");
        let found = file.windows(bytes.len()).position(|part| part == bytes);
        if let Some(at) = found.filter(|_| entry.file_name().to_string_lossy().ends_with(".seg")) {
            file[at + bytes.len() / 2] ^= 1;
            return std::fs::write(entry.path(), file).expect("written");
        }
    }
    panic!("no file has the column");
}

#[tokio::test]
async fn the_last_tick_before_a_kill_is_no_news_after_the_start_and_comes_with_its_values_when_it_is_asked_for() {
    let (mut hub, address) = plain().await;
    let (folder, clock) = (tempfile::tempdir().expect("a folder"), bench::clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(100);
    let (last, _) = bench.live.store().newest(0).expect("ticks");
    drop(bench);
    clock.pass(Duration::from_secs(5));
    let mut bench = Bench::open(folder.path(), &clock);
    let before = bench.live.store().state(0).expect("a source").seq();
    let uplink = connect_agent(&bench, address).start();
    hub.join("201 Created").await;
    let (mut link, hello) = hub.link("wg_a_1").await;
    assert_eq!((hello.seq, hello.offers.last().map(|offer| offer.last)), (before, Some(u64::MAX)));
    link.welcome(before - 1, 0).await;
    assert_eq!(link.ticks().await.len(), 0, "it has sampled nothing yet");
    assert_eq!(link.state.seq(), before, "what comes next builds on it");
    bench.ticks(1);
    bench.live.announce(&[0]);
    let came = link.ticks().await;
    assert!(came.len() == 1 && came[0].0 > before && came[0].2.iter().all(|value| value.is_finite()), "{came:?}");
    let (values, damage) = fetched(&mut link, 1, before, before).await;
    let wanted: BTreeMap<u32, BTreeMap<u64, f64>> = (0..)
        .zip(bench.read())
        .map(|(id, samples)| (id, samples.iter().filter(|(t, _)| *t == last).map(|(_, v)| (before, *v)).collect()))
        .collect();
    assert_eq!((values, damage), (wanted, None));
    uplink.stop().await;
}

#[tokio::test]
async fn of_a_block_with_a_wrong_byte_the_other_columns_are_offered_and_sent_and_the_damage_is_said() {
    let (mut hub, address) = plain().await;
    let (folder, clock) = (tempfile::tempdir().expect("a folder"), bench::clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(1_000);
    let block = bench.live.store().snapshot(0, 0, i64::MAX).expect("a source").blocks()[0].clone();
    let (first, last) = (block.first_seq(), block.last_seq());
    damage(folder.path(), &block.column(2).expect("read").expect("it has samples"));
    // The first reader detects the damage: here the first hub.
    assert_eq!(bench.live.store().damages().count(), 0);
    assert!(bench.read()[2].len() < bench.read()[1].len());
    assert_eq!(bench.live.store().damages().count(), 1);
    let uplink = connect_agent(&bench, address).start();
    hub.join("201 Created").await;
    let (mut link, hello) = hub.link("wg_a_1").await;
    let covers = |offer: &&Offer| offer.first <= first && offer.last >= last;
    assert!(hello.offers.iter().find(covers).is_some_and(|offer| offer.from == T0 + 1_000), "{:?}", hello.offers);
    link.welcome(0, 0).await;
    link.ticks().await;
    for id in 1..3 {
        // In one piece, and in two: it counts as one damage.
        let (values, damage) = fetched(&mut link, id, first, last + u64::from(id) - 1).await;
        let all = |series: &u32| values.get(series).map_or(0, |samples| samples.range(..=last).count() as u64);
        assert_eq!([0, 1, 3, 4].map(|series| all(&series)), [last - first + 1; 4]);
        assert_eq!(all(&2), 0, "nothing is made up");
        assert_eq!(damage, Some(FillDamage { id, places: 1 }));
    }
    uplink.stop().await;
}
