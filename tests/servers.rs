//! Two servers in one process: each is a value, and neither affects the other.

use watchglass_tests::server::ask_unread;
use watchglass_tests::stage::Stage;
use watchglass_tests::waiting::until_so;

#[test]
fn two_servers_in_one_process_work_beside_each_other() {
    let (one, other) = (Stage::with_past(64), Stage::with_past(2));
    let gpus = |stage: &Stage| stage.get("/api/v1/series?match=gpu.*.temp").body.matches("\"tag\"").count();
    assert_eq!((gpus(&one), gpus(&other)), (64, 2), "each has its own data");

    // More than the socket buffers hold, so that unread answers do not end.
    let (whole, small) = ("/api/v1/export?tag=*&from=-1h", "/api/v1/query?tag=gpu.0.temp&from=-10s");
    let addr = one.url.trim_start_matches("http://").trim_end_matches('/').parse().expect("its address");
    let unread = std::cell::RefCell::new(Vec::new());
    until_so("all places of the one are taken", || {
        let taken = one.get(small).status == 429;
        if !taken {
            unread.borrow_mut().push(ask_unread(addr, whole));
        }
        taken
    });
    assert_eq!(other.get(small).status, 200, "the limits of one do not count for the other");
    drop(unread);
    until_so("the places are given back", || one.get(small).status == 200);

    drop(one);
    assert_eq!((other.get(small).status, gpus(&other)), (200, 2), "the end of one is not that of the other");
}
