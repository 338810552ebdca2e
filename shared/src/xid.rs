//! NVIDIA's critical errors (XIDs): the number, NVIDIA's name for it, and the action that NVIDIA's catalog gives.
//!
//! The tables are `xid/catalog.txt` and `xid/nvlink5.txt`; their first lines name source and version. Some messages
//! carry more than the number. [`decode`] reads those that the catalog documents: NVLink errors (74, 144 to 150) and
//! the recovery action (154).

use crate::finding::Severity;
use std::cmp::Ordering;
use std::sync::LazyLock;

/// The GPU has fallen off the bus.
pub const OFF_THE_BUS: u32 = 79;
/// The driver's recovery action has changed.
pub const RECOVERY_ACTION: u32 = 154;
/// An NVLink error before NVLink 5.
const NVLINK: u32 = 74;
/// An uncorrectable memory error; [`MEMORY_DETAILS`] follow it.
const UNCORRECTABLE: u32 = 48;
/// They tell which memory an XID 48 is about, and have its action.
const MEMORY_DETAILS: [u32; 2] = [171, 172];
/// Errors of memory that lost data or could not be repaired. Remapped rows (63) and corrected errors (92) are none.
const MEMORY: [u32; 7] = [UNCORRECTABLE, 64, 94, 95, 140, 171, 172];

/// An action that the catalog or the driver gives. Its order is that of its cost: a higher one stops more work. Its number
/// is stored in samples, so new ones stand at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Action {
    /// None is required, or the catalog has none.
    Ignore = 0,
    /// That of the XID before it; alone, a restart of the fabric manager.
    FollowOther = 1,
    /// Restart the program.
    RestartApp = 2,
    /// Update driver and firmware.
    UpdateSoftware = 3,
    /// Check the NVLink connections.
    CheckLinks = 4,
    /// Check seat and power connectors.
    CheckMechanicals = 5,
    /// Reset the GPU where unified memory or virtual GPUs are in use.
    CheckUnifiedMemory = 6,
    /// Restart the virtual machine.
    RestartVm = 7,
    /// Ask the vendor.
    ContactSupport = 8,
    /// That of the driver's recovery action, whose text was not read.
    Recover = 9,
    /// Stop peer-to-peer work, then reset.
    DrainPeers = 10,
    /// Reset the GPU.
    ResetGpu = 11,
    /// Let the jobs on it end, then reset it.
    DrainAndReset = 12,
    /// Restart the machine.
    RestartMachine = 13,
    /// Recover the IMEX domain, by which GPUs of several machines share memory. NVML's alone.
    RecoverDomain = 14,
    /// Reset the PCIe bus of the GPU. NVML's alone.
    ResetBus = 15,
}

impl Ord for Action {
    fn cmp(&self, other: &Action) -> Ordering {
        self.cost().cmp(&other.cost())
    }
}

impl PartialOrd for Action {
    fn partial_cmp(&self, other: &Action) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Action {
    /// All actions, by number.
    pub const ALL: [Action; 16] = [
        Action::Ignore,
        Action::FollowOther,
        Action::RestartApp,
        Action::UpdateSoftware,
        Action::CheckLinks,
        Action::CheckMechanicals,
        Action::CheckUnifiedMemory,
        Action::RestartVm,
        Action::ContactSupport,
        Action::Recover,
        Action::DrainPeers,
        Action::ResetGpu,
        Action::DrainAndReset,
        Action::RestartMachine,
        Action::RecoverDomain,
        Action::ResetBus,
    ];

    /// Rank among the actions: a domain is recovered before any GPU is reset, and a bus is reset before a machine.
    fn cost(self) -> u8 {
        match self {
            Action::RecoverDomain => 2 * Action::Recover as u8 + 1,
            Action::ResetBus => 2 * Action::DrainAndReset as u8 + 1,
            other => 2 * other as u8,
        }
    }

    /// The action of a bucket of the catalog, as `RESET_GPU`; None for one that the catalog's immediate actions lack.
    fn of_bucket(bucket: &str) -> Option<Action> {
        Some(match bucket {
            "-" | "IGNORE" => Action::Ignore,
            "WORKFLOW_XID_45" => Action::FollowOther,
            // Without an XID 154 beside it, it is a restart.
            "RESTART_APP" | "XID_154_EVAL" => Action::RestartApp,
            "UPDATE_SWFW" => Action::UpdateSoftware,
            "WORKFLOW_NVLINK_ERR" | "WORKFLOW_NVLINK5_ERR" => Action::CheckLinks,
            "CHECK_MECHANICALS" => Action::CheckMechanicals,
            "CHECK_UVM" => Action::CheckUnifiedMemory,
            "RESTART_VM" => Action::RestartVm,
            "CONTACT_SUPPORT" => Action::ContactSupport,
            "XID_154" => Action::Recover,
            // By itself a reset; with remapped rows beside it, the jobs end first.
            "RESET_GPU" | "WORKFLOW_XID_48" => Action::ResetGpu,
            "RESTART_BM" => Action::RestartMachine,
            _ => return None,
        })
    }

    /// The action of a number, as samples have it; None if no action has it.
    pub fn of_number(number: u8) -> Option<Action> {
        Action::ALL.get(usize::from(number)).copied()
    }

    /// The recovery action of this number in NVML (`nvmlDeviceGpuRecoveryAction_t`); None for one that NVML lacks.
    pub fn of_recovery(number: u8) -> Option<Action> {
        const IN_NVML: [Action; 8] = [
            Action::Ignore,
            Action::ResetGpu,
            // The operating system alone.
            Action::RestartMachine,
            Action::DrainPeers,
            Action::DrainAndReset,
            Action::RecoverDomain,
            Action::ResetBus,
            Action::RestartMachine,
        ];
        IN_NVML.get(usize::from(number)).copied()
    }

    /// The need of a GPU whose driver requires this recovery action, as `a reset`; None for other actions.
    pub fn need(self) -> Option<&'static str> {
        Some(match self {
            Action::ResetGpu => "a reset",
            Action::RestartMachine => "a restart of the machine",
            Action::DrainPeers => "a reset without work that it shares with other GPUs",
            Action::DrainAndReset => "a reset once its jobs have ended",
            Action::RecoverDomain => "a recovery of its IMEX domain",
            Action::ResetBus => "a reset of its PCIe bus",
            _ => return None,
        })
    }

    /// The highest severity of a finding about an error with this action.
    pub fn severity(self) -> Severity {
        match self {
            Action::Ignore | Action::FollowOther | Action::UpdateSoftware => Severity::Note,
            Action::RestartApp
            | Action::CheckLinks
            | Action::CheckMechanicals
            | Action::CheckUnifiedMemory
            | Action::RestartVm
            | Action::ContactSupport
            | Action::Recover
            | Action::RecoverDomain => Severity::Warning,
            Action::DrainPeers
            | Action::ResetGpu
            | Action::DrainAndReset
            | Action::ResetBus
            | Action::RestartMachine => Severity::Critical,
        }
    }

    /// The next step for a person, as one sentence without a full stop.
    pub fn next(self) -> &'static str {
        match self {
            Action::Ignore => "No action is required by NVIDIA's catalog",
            Action::FollowOther => {
                "Follow the XID before it; if it comes alone and without an ended program, restart the fabric manager"
            }
            Action::RestartApp => "Restart the program; the GPU needs no reset",
            Action::UpdateSoftware => "Update the driver and the firmware, on hosts and guests alike",
            Action::CheckLinks => "Run nvidia-smi nvlink -e, and check the links; a reset of the GPU clears the error",
            Action::CheckMechanicals => "Check that the GPU sits firmly and that its power connectors are plugged in",
            Action::CheckUnifiedMemory => {
                "Reset the GPU if its programs use unified memory or virtual GPUs; otherwise no action is required"
            }
            Action::RestartVm => "Restart the virtual machine that has the GPU",
            Action::ContactSupport => "Ask the vendor's support, with the output of nvidia-bug-report.sh",
            Action::Recover => "Run nvidia-smi -q, and follow its GPU recovery action",
            Action::DrainPeers => "Stop the jobs that use this GPU together with others, then reset it",
            Action::ResetGpu => {
                "Stop the jobs on the GPU and reset it with nvidia-smi --gpu-reset; ask the vendor if it comes again"
            }
            Action::DrainAndReset => "Start no further jobs on the GPU, let the running ones end, then reset it",
            Action::RestartMachine => "Restart the machine; ask the vendor if it comes again",
            Action::RecoverDomain => {
                "Restart nvidia-imex on the machines of the domain, then the programs that share memory by it"
            }
            Action::ResetBus => "Stop the jobs on the GPU and reset its PCIe bus, or restart the machine",
        }
    }
}

/// An error of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xid {
    /// Its number, from 1.
    pub code: u32,
    /// NVIDIA's name for it, as `GSP_RPC_TIMEOUT`.
    pub mnemonic: &'static str,
    /// The catalog's bucket of the immediate action, as `RESET_GPU`; a minus if the catalog has none.
    pub immediate: &'static str,
    /// The catalog's bucket of the investigatory action; a minus if the catalog has none.
    pub investigatory: &'static str,
    /// The driver from which an XID 154 follows, as `R565`; `yes`: since the code exists; a minus: none follows.
    pub followed_by_154: &'static str,
    /// Products that have it: `A` A100, `H` H100, `B` B100, `G` GB200; a minus: none of them.
    pub products: &'static str,
}

impl Xid {
    /// The immediate action of the catalog.
    pub fn action(&self) -> Action {
        if MEMORY_DETAILS.contains(&self.code) {
            return by_code(UNCORRECTABLE).map_or(Action::ResetGpu, Xid::action);
        }
        Action::of_bucket(self.immediate).unwrap_or(Action::ContactSupport)
    }

    /// Its meaning in a few plain words, or else its mnemonic.
    pub fn words(&self) -> &'static str {
        match self.code {
            _ if self.is_of_programs() => "usually caused by a program, not by the board",
            8 | 46 => "it stopped processing",
            62 | 169 => "an internal microcontroller halted",
            63 => "it replaced a defective row of its memory",
            92 => "many corrected memory errors",
            NVLINK | 136 | 144..=150 | 155 => "an NVLink error",
            109 => "a context switch timed out",
            119 | 120 => "its system processor did not respond",
            143 => "it could not be initialized",
            RECOVERY_ACTION => "the driver changed its recovery action",
            _ => self.mnemonic,
        }
    }

    /// Whether data in memory was lost, or a repair of memory failed.
    pub fn is_of_memory(&self) -> bool {
        MEMORY.contains(&self.code)
    }

    /// Whether the catalog looks for the reason in a program first.
    pub fn is_of_programs(&self) -> bool {
        // It gives no class for 43 and 45, but says in words that a program was at fault or ended.
        let words = matches!(self.code, 43 | 45);
        words || matches!(self.investigatory, "CHECK_APP/CUDA" | "WORKFLOW_XID_13" | "WORKFLOW_XID_31" | "XID_137_FLOW")
    }
}

/// A row of the decode table of NVLink 5.
struct LinkError {
    code: u32,
    /// Bits 25 to 20 of intrInfo.
    reason: u32,
    /// The lowest bits of intrInfo with their number, before R575 and from it on. No value fits rows of both.
    low: [(u32, u32); 2],
    status: Option<u32>,
    action: Action,
}

static CATALOG: LazyLock<Vec<Xid>> = LazyLock::new(|| rows(include_str!("xid/catalog.txt")).filter_map(xid).collect());
static LINK_ERRORS: LazyLock<Vec<LinkError>> =
    LazyLock::new(|| rows(include_str!("xid/nvlink5.txt")).filter_map(link_error).collect());

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

fn xid(row: Vec<&'static str>) -> Option<Xid> {
    let [code, mnemonic, immediate, investigatory, followed_by_154, products] = row[..] else { return None };
    Some(Xid { code: code.parse().ok()?, mnemonic, immediate, investigatory, followed_by_154, products })
}

fn link_error(row: Vec<&'static str>) -> Option<LinkError> {
    let [code, _, reason, before, since, status, immediate, _] = row[..] else { return None };
    let bits = |text: &str| Some((u32::from_str_radix(text, 2).ok()?, u32::try_from(text.len()).ok()?));
    let status = match status {
        "-" => None,
        hex => Some(u32::from_str_radix(hex, 16).ok()?),
    };
    Some(LinkError {
        code: code.parse().ok()?,
        reason: bits(reason)?.0,
        low: [bits(before)?, bits(since)?],
        status,
        action: Action::of_bucket(immediate)?,
    })
}

/// The whole catalog, by number.
pub fn catalog() -> &'static [Xid] {
    &CATALOG
}

/// An error by its number; None for one that the catalog lacks.
pub fn by_code(code: u32) -> Option<&'static Xid> {
    let at = CATALOG.binary_search_by_key(&code, |xid| xid.code).ok()?;
    CATALOG.get(at)
}

/// The action of an error: by the text of its message where the catalog documents that, else by its number. None for a
/// number that the catalog lacks.
pub fn action(code: u32, message: &str) -> Option<Action> {
    decode(code, message).or_else(|| Some(by_code(code)?.action()))
}

/// The action that the message of an error carries, as the kernel's log has it behind the number; None where it carries
/// none, or one that the catalog does not document.
pub fn decode(code: u32, message: &str) -> Option<Action> {
    match code {
        NVLINK => nvlink(message),
        RECOVERY_ACTION => recovery(message),
        _ => nvlink5(code, message),
    }
}

/// The driver's recovery action, as in `GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)`. The
/// number is NVML's; the words behind it vary: driver 610 writes `PF FLR` for 0x1 and `OS Reboot` for 0x2.
fn recovery(message: &str) -> Option<Action> {
    let (number, words) = message.split_once(" to 0x")?.1.split_once(" (")?;
    // A message that was cut has no end.
    words.contains(')').then_some(())?;
    Action::of_recovery(u8::from_str_radix(number, 16).ok()?)
}

/// The hex numbers in the last parentheses: `(0x004505c6 0x00000000 ...)`, or with commas. At most eight.
fn registers(message: &str) -> Option<Vec<u32>> {
    let (_, inside) = message.rsplit_once('(')?;
    let inside = inside.split_once(')')?.0;
    let words = inside.split([' ', ',']).filter(|word| !word.is_empty()).take(8);
    words.map(|word| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect()
}

/// As in `NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 ...)`: intrInfo and errorStatus.
fn nvlink5(code: u32, message: &str) -> Option<Action> {
    if !LINK_ERRORS.iter().any(|row| row.code == code) {
        return None;
    }
    let [info, status, ..] = registers(message)?[..] else { return None };
    let fits = |row: &&LinkError| {
        let low = |(value, bits): (u32, u32)| info & ((1 << bits) - 1) == value;
        row.code == code
            && row.reason == info >> 20 & 0x3f
            && row.low.into_iter().any(low)
            && row.status.is_none_or(|own| own == status)
    };
    LINK_ERRORS.iter().find(fits).map(|row| row.action)
}

/// Bits of the registers of an XID 74, by position from 0, and their action; for Hopper, as the catalog's
/// WORKFLOW_NVLINK_ERR has them. Secondary errors follow another XID.
const NVLINK_BITS: &[(usize, &[u32], Action)] = &[
    (0, &[0, 23, 30], Action::Ignore),
    (0, &[1, 20], Action::FollowOther),
    (0, &[4, 5, 27, 29], Action::ContactSupport),
    (0, &[8, 9, 12, 16, 17, 24, 28, 21, 22], Action::CheckMechanicals),
    (2, &[0, 1, 2, 6, 13, 16, 17, 18, 19], Action::ContactSupport),
    (3, &[16, 17], Action::FollowOther),
    (3, &[18], Action::ResetGpu),
    (4, &[18, 19, 21, 22, 24, 25, 27, 28], Action::ContactSupport),
    (4, &[20, 23, 26, 29], Action::Ignore),
];

/// As in `NVLink: fatal error detected on link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)`: seven registers. The gravest
/// bit decides; with a bit that the catalog does not name nothing is known.
fn nvlink(message: &str) -> Option<Action> {
    let registers = registers(message)?;
    if registers.len() != 7 {
        return None;
    }
    let mut gravest = None;
    for (at, register) in registers.into_iter().enumerate() {
        for bit in (0..32).filter(|bit| register >> bit & 1 == 1) {
            let (.., action) = NVLINK_BITS.iter().find(|(own, bits, _)| *own == at && bits.contains(&bit))?;
            gravest = gravest.max(Some(*action));
        }
    }
    gravest
}

/// The catalog as a page of the documentation.
pub fn markdown() -> String {
    let mut text = String::from(
        "# XIDs\n\nNVIDIA's critical errors, as [NVIDIA's Xid \
        Catalog](https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html) lists them: read in November \
        2026, with\ndrivers up to R575. *Immediate* and *investigatory* are the catalog's buckets. *Highest* is the \
        highest severity of a finding about the\nerror. *154* is the driver from which an XID 154 with a recovery \
        action follows.\n\nThe messages of XIDs 74, 144 to 150 and 154 tell more. Their action is that \
        of the message if the kernel's log can be read.\n\n| XID | name | immediate | investigatory | 154 | highest | next \
        step |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for xid in catalog() {
        let Xid { code, mnemonic, immediate, investigatory, followed_by_154, .. } = xid;
        let action = xid.action();
        text += &format!(
            "| {code} | `{mnemonic}` | {immediate} | {investigatory} | {followed_by_154} | {} | {} |\n",
            action.severity().as_str(),
            action.next()
        );
    }
    text
}

#[cfg(test)]
mod tests;
