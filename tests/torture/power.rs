//! Power cuts: an ext4 file system is stopped at once, without writing its journal (`FS_IOC_SHUTDOWN`). The disk then
//! has the state after a power cut.

use crate::{Plan, TortureResult};
use std::path::Path;
use std::time::{Duration, Instant};
use stream::clock::{Clock, System};
use watchglass_tests::audit::Audit;
use watchglass_tests::kills::keeping;
use watchglass_tests::ledger::{Chance, Ledger};
use watchglass_tests::mount::Mount;
use watchglass_tests::server::Server;

const WHAT: &str = "power cuts";

/// Maximum time in ms before a power cut whose samples may be lost.
const PROMISED: i64 = 5_000;

/// Cuts the power of a server at random moments.
pub fn cuts(plan: &Plan) -> TortureResult {
    let (mount, ledger) = match Mount::disk(256 << 20) {
        Ok(mount) => (mount, Ledger::start()),
        Err(why) => return TortureResult::left_out(WHAT, &why),
    };
    eprintln!("{} power cuts", plan.cuts);
    let (mut audit, mut chance) = (Audit::default(), Chance::new(plan.seed));
    let (mut worst, mut done) = (0, 0);
    while done < plan.cuts && Instant::now() < plan.until {
        match cut(&mount, &ledger, &mut audit, &mut chance) {
            Ok(cost) => worst = worst.max(cost),
            Err(why) if done == 0 => return TortureResult::left_out(WHAT, &why),
            Err(why) => return TortureResult::new(WHAT, done, plan.cuts, &audit).fail(why),
        }
        done += 1;
    }
    let row = TortureResult::new(WHAT, done, plan.cuts, &audit);
    row.add_remark(format!(
        "at most {:.1} s were not on the disk, of {} s promised",
        worst as f64 / 1e3,
        PROMISED / 1_000
    ))
}

/// Makes one cut. Returns the time in ms before the cut whose samples are not on the disk.
fn cut(mount: &Mount, ledger: &Ledger, audit: &mut Audit, chance: &mut Chance) -> Result<i64, String> {
    let folder = mount.path().join("data");
    let server = Server::start_as_it_is(keeping(&folder, ledger, "100ms"));
    audit.settle(&server, ledger, i64::MAX);
    let (begin, life) = (Instant::now(), Duration::from_millis(5_500 + chance.below(6_000)));
    while begin.elapsed() < life {
        audit.read_last(&server, 15);
    }
    let at = System.wall();
    shut_down(&mount.path())?;
    drop(server);
    mount.unmount()?;
    mount.again()?;
    let seen = audit.newest();
    let server = Server::start_as_it_is(keeping(&folder, ledger, "1s"));
    audit.settle(&server, ledger, at - PROMISED);
    drop(server);
    let kept = audit.newest().min(seen).unwrap_or(0);
    Ok(at - kept)
}

/// Stops the file system at once.
#[cfg(target_os = "linux")]
pub fn shut_down(path: &Path) -> Result<(), String> {
    use std::os::fd::AsRawFd;
    // This is _IOR('X', 125, u32). The value below skips the journal.
    const FS_IOC_SHUTDOWN: libc::Ioctl = 0x8004_587d_u32 as libc::Ioctl;
    let no_log_flush: u32 = 2;
    let file = std::fs::File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    // SAFETY: the request reads one u32, which outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_SHUTDOWN, &raw const no_log_flush) };
    if done == 0 { Ok(()) } else { Err(format!("FS_IOC_SHUTDOWN: {}", std::io::Error::last_os_error())) }
}

#[cfg(not(target_os = "linux"))]
pub fn shut_down(_: &Path) -> Result<(), String> {
    Err("only Linux stops a file system when it is told to".into())
}
