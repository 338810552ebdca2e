//! Messages survive a round trip, and untrusted bytes are rejected.

use super::*;
use crate::catalog::{Metric, MetricDef};
use crate::series::SeriesDef;
use crate::unit::Unit;
use crate::wire::ColumnBytes;
use proptest::prelude::*;

fn hello() -> AgentHello {
    AgentHello {
        instance: u64::MAX,
        folder: 7,
        boot: Some([1; 32]),
        machine: None,
        host: "gpu-7".into(),
        version: "0.1.0".into(),
        started: 1_700_000_000_000,
        interval: 1_000,
        facts: vec![("os.type".into(), "linux".into())],
        labels: vec![("tier".into(), "gpu".into())],
        now: 1_700_000_001_000,
        life: 5,
        seq: 9,
        record: 0,
        retention: 43_200_000,
        memory: false,
        offers: vec![Offer { first: 5, last: u64::MAX, from: 1, to: i64::MAX }],
    }
}

fn fill() -> FillPart {
    FillPart {
        id: 3,
        first: 10,
        last: 12,
        clock_step: true,
        more: false,
        times: vec![1, 2, 3],
        columns: vec![(4, ColumnBytes(vec![5; 40])), (9, ColumnBytes(Vec::new()))],
    }
}

fn row() -> Metric {
    let row =
        MetricDef::gauge("own.{x}.level", Unit::Percent).title("Level").on("own", "{x}").help("A row of an agent.");
    Metric::from(&row)
}

fn of_agent() -> Vec<AgentMessage> {
    vec![
        AgentMessage::Hello(Box::new(hello())),
        AgentMessage::Rows { rows: vec![(300, row())], charts: Vec::new() },
        AgentMessage::Series { defs: vec![(7, SeriesDef { metric: 300, instance: "0".into() })] },
        AgentMessage::Checks(Vec::new()),
        AgentMessage::Facts { host: "a".into(), facts: Vec::new(), labels: Vec::new() },
        AgentMessage::Clock { id: 2, sent: -1, arrived: Some(4) },
        AgentMessage::Answer { id: 1, bytes: vec![0; 300] },
        AgentMessage::FillEnd { id: 3, state: FillState::Gone },
        AgentMessage::Bye(ByeReason::Upgrading),
        AgentMessage::Heartbeat,
    ]
}

fn of_hub() -> Vec<HubMessage> {
    vec![
        HubMessage::Welcome(Welcome {
            version: "0.1.0".into(),
            name: "node-7".into(),
            now: 1,
            holds: 2,
            record: 3,
            spread: 4,
            max_series: 20_000,
            max_rows: 2_000,
        }),
        HubMessage::Clock { id: 1, sent: 2, received: 3, answered: 4 },
        HubMessage::Want { id: 1, first: 2, last: u64::MAX },
        HubMessage::Ack { messages: 3, seq: 4, record: 5 },
        HubMessage::Ask { id: 9, what: Question::Processes { at: Some(-5) } },
        HubMessage::Ask { id: 10, what: Question::Doctor },
        HubMessage::Heartbeat,
        HubMessage::Goodbye { code: close::IN_USE, reason: "in use".into(), wait: 60_000 },
        HubMessage::Ask { id: 11, what: Question::Submission { shift: -5, json: b"{}".to_vec() } },
    ]
}

#[test]
fn messages_come_back_and_none_that_is_cut_or_longer() {
    let control = of_agent().into_iter().map(|m| (encode(&m), FromAgent::Control(m)));
    let record = Record { n: 4, t: 5, kind: "marker".into(), body: vec![1; 9] };
    let others = [
        (encode_fill(&fill()), FromAgent::Fill(fill())),
        (encode_records(std::slice::from_ref(&record)), FromAgent::Records(vec![record])),
        (encode_damage(&FillDamage { id: 3, places: 300 }), FromAgent::Damage(FillDamage { id: 3, places: 300 })),
    ];
    for (mut bytes, message) in control.chain(others) {
        assert_eq!(decode_agent(&bytes).as_ref(), Ok(&message));
        for cut in 0..bytes.len() {
            assert_eq!(decode_agent(&bytes[..cut]), Err(BadMessage), "{cut} bytes of {message:?}");
        }
        bytes.push(0);
        assert_eq!(decode_agent(&bytes), Err(BadMessage), "one byte behind {message:?}");
    }
    for message in of_hub() {
        let mut bytes = encode_hub(&message);
        assert_eq!(decode_hub(&bytes).as_ref(), Ok(&Some(message.clone())));
        for cut in 0..bytes.len() {
            assert_eq!(decode_hub(&bytes[..cut]), Err(BadMessage));
        }
        bytes.push(0);
        assert_eq!(decode_hub(&bytes), Err(BadMessage));
    }
}

/// Sender, variant and bytes of each message of this version.
fn list_messages() -> Vec<(String, Vec<u8>)> {
    let record = Record { n: 4, t: 5, kind: "marker".into(), body: vec![1; 9] };
    let agents = of_agent().into_iter().map(|message| encode(&message));
    let agents = agents.chain([encode_fill(&fill()), encode_records(&[record]), encode_ticks([&b"one"[..], b"two"])]);
    let hubs = of_hub().into_iter().map(|message| encode_hub(&message));
    let agents = agents.enumerate().map(|(n, bytes)| (format!("agent {n}"), bytes));
    agents.chain(hubs.enumerate().map(|(n, bytes)| (format!("hub {n}"), bytes))).collect()
}

#[test]
fn the_bytes_of_this_version_never_change() {
    let now: String = list_messages().iter().map(|(who, bytes)| format!("{who} {}\n", hex::encode(bytes))).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/agent/recorded.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &now).expect("the folder of the sources");
    }
    let recorded = std::fs::read_to_string(path).expect("what was recorded");
    assert_eq!(
        now, recorded,
        "agents and hubs of other versions send the recorded bytes; add a kind of message instead"
    );
}

#[test]
fn what_another_version_adds_is_skipped() {
    assert_eq!(decode_agent(&[9, 1, 2]), Ok(FromAgent::Unknown));
    assert_eq!(decode_hub(&[99, 1, 2]), Ok(None));
    assert_eq!(decode_hub(&[6, 1]), Ok(None), "an older hub asked NCCL about all jobs");
    let asked = HubMessage::Ask { id: 300, what: Question::Nccl { gpus: vec![3] } };
    let bytes = encode_hub(&asked);
    assert_eq!((bytes[0], decode_hub(&bytes)), (NCCL, Ok(Some(asked))), "an older agent skips it");
    let asked = HubMessage::Ask { id: 301, what: Question::Stacks { gpus: vec![0, 511] } };
    let bytes = encode_hub(&asked);
    assert_eq!((bytes[0], decode_hub(&bytes)), (STACKS, Ok(Some(asked))), "and this, too");
}

#[test]
fn frames_are_read_one_by_one_and_a_length_beyond_the_end_is_refused() {
    let frames = |bytes: &[u8]| match decode_agent(bytes) {
        Ok(FromAgent::Ticks(frames)) => frames.map(|frame| frame.map(<[u8]>::to_vec)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let bytes = encode_ticks([&b"one"[..], &b""[..], &b"three"[..]]);
    assert_eq!(frames(&bytes), [Ok(b"one".to_vec()), Ok(Vec::new()), Ok(b"three".to_vec())]);
    for hostile in [&[TICKS, 200][..], &[TICKS, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0]] {
        assert_eq!(frames(hostile), [Err(BadMessage)]);
    }
    assert_eq!(frames(&[TICKS]), []);
}

#[test]
fn lengths_that_the_bytes_do_not_have_are_refused_before_memory_is_taken() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    // Hello is variant 0, rows 1, series 2, checks 3, answer 6.
    for variant in [1, 2, 3] {
        assert_eq!(decode_agent(&[&[CONTROL, variant][..], &huge].concat()), Err(BadMessage));
    }
    assert_eq!(decode_agent(&[&[CONTROL, 6, 1][..], &huge].concat()), Err(BadMessage));
    assert_eq!(decode_agent(&[&[RECORDS][..], &huge].concat()), Err(BadMessage));
    assert_eq!(decode_agent(&[&[FILL, 1, 1, 1, 0, 0][..], &huge].concat()), Err(BadMessage));
    assert_eq!(decode_agent(&vec![TICKS; MAX_MESSAGE + 1]), Err(BadMessage));
    assert_eq!(decode_hub(&vec![CONTROL; MAX_MESSAGE + 1]), Err(BadMessage));
}

#[test]
fn the_ticks_of_a_block_are_bounded() {
    assert_eq!(fill().ticks(), Some(3));
    for (first, last) in [(2, 1), (0, u64::MAX), (1, u64::from(MAX_FILL_TICKS) + 1)] {
        assert_eq!(FillPart { first, last, ..fill() }.ticks(), None);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read_but_never_panic(kind in 0u8..4, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let bytes = [&[kind][..], &bytes].concat();
        if let Ok(FromAgent::Ticks(frames)) = decode_agent(&bytes) {
            frames.for_each(|frame| { let _ = frame; });
        }
        let _ = decode_hub(&bytes);
    }
}
