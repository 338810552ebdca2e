//! Answers from NCCL's documentation are read, and servers that lie, hang, flood or close cost little.

use super::*;
use shared::nccl::{MAX_RANKS, NcclLack};
use std::net::TcpListener;
use std::thread;

/// The example of NCCL's documentation, "RAS": ranks that are behind.
const MISMATCH: &str = "\
Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4         8        32        32   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  26 ranks have launched up to operation 6650
  6 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
  Rank 3 -- GPU 3 managed by process 483075 on node 172.16.64.210
  Rank 4 -- GPU 4 managed by process 483076 on node 172.16.64.210
  Rank 5 -- GPU 5 managed by process 483077 on node 172.16.64.210
  Rank 7 -- GPU 7 managed by process 483079 on node 172.16.64.210
";

/// The example of a process that is gone.
const INCOMPLETE: &str = "\
Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 29 -- GPU 5 managed by process 3487984 on node 172.16.64.213

Warnings
========

TIMEOUT
  Encountered 1 communication timeout while gathering communicator data
";

/// The same as 2.24 writes it: ranks without their processes.
const INCOMPLETE_2_24: &str = "\
Errors
======

DEAD
  2 job processes are considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5
  Process 3487985 on node 172.16.64.213 managing GPU 6

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 2 ranks
  The missing ranks: 21,22

#1-3 (9e17999afaa87dbb) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 5

Warnings
========

#0-0 (cf264af53edbe986) MISMATCH
  Communicator ranks have different status
  29 ranks have status RUNNING
  The unknown ranks: 21,22
";

/// The form of later versions: the counts of each operation, and a rank by itself.
const STRAGGLER: &str = "\
Warnings
========

#0-0 (78db921d1c117b4a) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 64
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node 10.0.0.1

  Communicator ranks have different Broadcast operation counts
  5 ranks have launched up to operation 2
  3 ranks have not launched any operations
  Rank 0 -- GPU 0 managed by process 1650383 on node 10.0.0.1
  Rank 1 -- GPU 1 managed by process 1650384 on node 10.0.0.1
  Rank 2 -- [process information not found]
";

/// CONSTRUCTED from the source of RCCL 2.26: only the first lines differ from NCCL's.
const RCCL: &str = "\
RCCL version 2.26.6 compiled with ROCm \"7.0.0.0\"
HIP runtime version 70051831, amdgpu driver version 70051831

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          8            1         16       16

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         8        16        16   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (9d8c3a51f00d1e27) MISMATCH
  Communicator ranks have different AllReduce operation counts
  15 ranks have launched up to operation 981
  Rank 11 has launched up to operation 980 -- GPU 3 managed by process 22517 on node 10.1.0.2

";

/// The JSON of 2.28.7: rank 1 is behind, and rank 2 is missing where `missing` is set.
fn json(missing: bool) -> String {
    let rank = |rank: u32, count: u64| {
        format!(
            "{{ \"rank\": {rank}, \"host\": \"10.0.0.1\", \"pid\": {}, \"cuda_dev\": {rank}, \"nvml_dev\": {rank},
             \"status\": {{ \"init_state\": 0, \"async_error\": 0, \"finalize_called\": false, \"destroy_flag\": false,
             \"abort_flag\": false }}, \"collective_counts\": {{ \"Broadcast\": 2, \"AllReduce\": {count} }} }}",
            100 + rank
        )
    };
    let gone = "{ \"rank\": 2, \"host\": \"10.0.0.2\", \"pid\": 202, \"cuda_dev\": 0, \"nvml_dev\": 0,
         \"status\": { \"unresponsive\": true, \"considered_dead\": false } }";
    format!(
        "{{ \"nccl_version\": \"2.28.7\", \"communicators_count\": 1, \"communicators\": [ {{ \"hash\": \"0x27a079b828ff1a75\",
         \"secondary_hash\": \"0x1:0x2\", \"size\": 3, \"ranks_count\": 2, \"missing_ranks_count\": 1,
         \"ranks\": [ {}, {} ], \"missing_ranks\": [ {} ] }} ], \"ras\": {{ \"collection_time_sec\": 0.001, \"timeouts_count\": 0 }} }}\n",
        rank(0, 81_231),
        rank(1, 81_230),
        if missing { gone } else { "" }
    )
}

fn words(answer: &str) -> Option<String> {
    answer::read(answer.as_bytes()).map(|report| report.words())
}

#[test]
fn answers_of_all_versions_name_the_ranks_that_the_others_wait_for() {
    assert_eq!(
        words(MISMATCH).as_deref(),
        Some("NCCL: ranks 0, 2, 3, 4, 5, 7 have issued 6649 of 6650 operations, communicator 27a079b828ff1a75")
    );
    assert_eq!(
        words(INCOMPLETE).as_deref(),
        Some("NCCL: rank 29 (process 3487984 on 172.16.64.213) does not answer, communicator cf264af53edbe986")
    );
    // The smallest group counts.
    let of_2_24 = INCOMPLETE_2_24.split("#1-3").next().expect("a begin");
    assert_eq!(
        [of_2_24, INCOMPLETE_2_24].map(words).map(|words| words.expect("ranks")),
        [
            "NCCL: ranks 21, 22 do not answer, communicator cf264af53edbe986",
            "NCCL: rank 5 does not answer, communicator 9e17999afaa87dbb"
        ]
    );
    assert_eq!(
        words(STRAGGLER).as_deref(),
        Some(
            "NCCL: rank 7 (process 1650386 on 10.0.0.1) has issued 60 of 64 operations, communicator 78db921d1c117b4a"
        )
    );
    assert_eq!(
        words(RCCL).as_deref(),
        Some(
            "NCCL: rank 11 (process 22517 on 10.1.0.2) has issued 980 of 981 operations, communicator 9d8c3a51f00d1e27"
        )
    );
    assert_eq!(
        words(&json(false)).as_deref(),
        Some(
            "NCCL: rank 1 (process 101 on 10.0.0.1) has issued 81,230 of 81,231 operations, communicator 27a079b828ff1a75"
        )
    );
    let silent = "NCCL: rank 2 (process 202 on 10.0.0.2) does not answer, communicator 27a079b828ff1a75";
    assert_eq!(words(&json(true)).as_deref(), Some(silent));
}

#[test]
fn answers_without_a_lack_and_those_that_lie_name_nobody() {
    let fine = MISMATCH.split("#0-0").next().expect("a begin");
    let lies = [
        fine,
        "",
        "{",
        "{ \"communicators\": 3 }",
        "#0-0 (x) INCOMPLETE\n  Rank 99999999999 -- GPU 0",
        "#0-0 (x) INCOMPLETE\n  The missing ranks: <b>, -1, 99999999999",
        "  The missing rank: 5",
        "  Rank 1 -- GPU 0 managed by process 1 on node 10.0.0.1",
        "#0-0 (1) ERROR\n  Rank 1 reported System error -- GPU 0 managed by process 1 on node 10.0.0.1",
        "#0-0 (1) MISMATCH\n  Rank 1 has status ABORT -- GPU 0 managed by process 1 on node 10.0.0.1",
    ];
    for lie in lies {
        assert_eq!(words(lie), None, "{lie}");
    }
    // Texts of the answer are never used, and lists of ranks are bounded.
    let text = "#0-0 (1) INCOMPLETE\n  Rank 1 -- GPU 0 managed by process 1 on node <script>\n";
    assert_eq!(words(text).as_deref(), Some("NCCL: rank 1 does not answer, communicator 0000000000000001"));
    let many: String = (0..5_000).map(|n| format!("  Rank {n} -- [process information not found]\n")).collect();
    let report = answer::read(format!("#0-0 (1) INCOMPLETE\n{many}").as_bytes()).expect("a report");
    assert_eq!((report.ranks.len(), report.further, report.lack), (MAX_RANKS, 4_992, NcclLack::Silent));
}

/// Answers each line of a request by `lines`, and the last one by `rest`.
fn serve(mut stream: TcpStream, lines: &[&str], rest: impl Fn(&mut TcpStream)) {
    let mut byte = [0];
    let mut line = |stream: &mut TcpStream| {
        while stream.read(&mut byte).is_ok_and(|read| read == 1) && byte[0] != b'\n' {}
    };
    for answer in lines {
        line(&mut stream);
        let _ = stream.write_all(answer.as_bytes());
    }
    line(&mut stream);
    rest(&mut stream);
}

/// A server that answers one request by `lines`, and then sends `rest`; the port.
fn server(lines: &'static [&'static str], rest: impl Fn(&mut TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || serve(listener.accept().expect("a request").0, lines, rest));
    port
}

/// The lines before the answer, of a version that knows JSON and of one that does not.
const KNOWS: &[&str] = &["SERVER PROTOCOL 2\n", "OK\n", "OK\n"];
const KNOWS_NOT: &[&str] = &["SERVER PROTOCOL 2\n", "OK\n", "ERROR: Unknown command SET FORMAT json\n"];

#[test]
fn a_server_is_asked_in_its_own_form() {
    let text = server(KNOWS_NOT, |stream| stream.write_all(STRAGGLER.as_bytes()).expect("sent"));
    assert!(ask(text).is_some_and(|report| report.ranks[0].rank == 7));
    let json = server(KNOWS, |stream| stream.write_all(json(true).as_bytes()).expect("sent"));
    assert!(ask(json).is_some_and(|report| report.ranks[0].rank == 2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_on_the_other_address_of_loopback_is_found() {
    assert_eq!(LOOPBACK.map(|address| address.to_string()), ["127.0.0.1", "::1"]);
    // Not each machine has `::1`; Linux has all of 127.0.0.0/8.
    let other = Ipv4Addr::new(127, 0, 0, 2);
    let listener = TcpListener::bind((other, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let until = Instant::now() + TIMEOUT;
    assert!(Deadline::connect([Ipv4Addr::LOCALHOST.into(), other.into()], port, until).is_ok());
}

#[test]
fn an_answer_that_is_too_long_as_json_is_requested_as_text() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        let long = |stream: &mut TcpStream| while stream.write_all(&[b' '; 64 << 10]).is_ok() {};
        serve(listener.accept().expect("a request").0, KNOWS, long);
        let text = |stream: &mut TcpStream| stream.write_all(STRAGGLER.as_bytes()).expect("sent");
        serve(listener.accept().expect("another").0, &KNOWS[..2], text);
    });
    assert!(ask(port).is_some_and(|report| report.ranks[0].rank == 7));
}

#[test]
fn a_server_that_hangs_floods_closes_or_is_another_costs_five_seconds_at_most() {
    let begun = Instant::now();
    let hangs = server(KNOWS, |_| thread::sleep(Duration::from_secs(30)));
    let drips = server(KNOWS, |stream| {
        while stream.write_all(b"#").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    let silent = server(&[], |_| thread::sleep(Duration::from_secs(30)));
    let slow = thread::spawn(move || [hangs, drips, silent].map(|port| thread::spawn(move || ask(port))));
    let floods = server(KNOWS, |stream| while stream.write_all(&[b'#'; 64 << 10]).is_ok() {});
    let endless = server(&["SERVER PROTOCOL 2"], |stream| while stream.write_all(&[b'x'; 1 << 10]).is_ok() {});
    let closes = server(&["SERVER PROTOCOL 2\n"], |_| {});
    let other = server(&["HTTP/1.1 400 Bad Request\n"], |_| {});
    for port in [floods, endless, closes, other] {
        assert_eq!(ask(port), None);
    }
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr()).expect("a port").port();
    assert_eq!(ask(nobody), None);
    for asked in slow.join().expect("started") {
        assert_eq!(asked.join().expect("no panic"), None);
    }
    // Those that hang do so for much longer. A loaded machine starts each thread late.
    assert!(begun.elapsed() < TIMEOUT * 4, "{:?}", begun.elapsed());
}

#[test]
fn the_port_is_that_of_the_variable() {
    assert_eq!(["localhost:28028", "[::1]:9", "10.0.0.1:65535"].map(port_in), [Some(28_028), Some(9), Some(65_535)]);
    assert_eq!(["localhost", "x:0", "x:70000", ""].map(port_in), [None; 4]);
}
