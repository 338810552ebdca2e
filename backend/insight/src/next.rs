//! The next step of a finding for its reader: by rule, and by cause where the evidence tells one.
//!
//! A step only checks where the evidence leaves more than one cause open. Steps of XIDs are in `shared::xid`.

/// The step of a rule for any cause; None for an unknown rule.
pub(crate) fn of_rule(rule: &str) -> Option<&'static str> {
    Some(match rule {
        "lost_gpu" => "Look for XID and PCIe errors of the GPU with dmesg; if it stays away, restart the machine",
        "collector_silent" => "Run watchglass doctor on the machine: it names what the collector lacks",
        "ecc.uncorrected" => "Stop the jobs on the GPU and reset it; ask the vendor if errors come again",
        "ecc.corrected" => "Let the job run, since these errors were corrected; ask the vendor if the rate stays high",
        "xid" => UNKNOWN_XID,
        "fabric" => {
            "Check nvidia-smi -q and the log of the fabric manager; restart it, then the GPU, if the state stays"
        }
        "recovery" => "Run nvidia-smi -q, and follow its GPU recovery action",
        "host_lost" => "Check power and network of the machine, and that its agent runs",
        "hang.spin" => "Look for the rank that waits elsewhere, for example with py-spy dump",
        "hang.odd" => "Look at the process of this GPU first, for example with py-spy dump",
        "hang.idle" => "Look at what the processes wait for, for example with py-spy dump",
        "throttle.heat" => "Check fans, airflow and inlet temperature of the machine; a lower power limit helps",
        "throttle.power" => POWER_LIMIT,
        "slow_link.pcie" => "Restart the machine to train the link anew; if it stays slow, reseat the GPU or its riser",
        "slow_link.nvlink" => "Compare its links with those of its peers: nvidia-smi nvlink -s and -e, or amd-smi xgmi",
        "slow_link.net" => "Compare the error counters of the interface (ethtool -S) and of its switch port",
        "slow_link.port" => "Check cable and switch port of the link, for example with ibstat and ibdiagnet",
        "gpu_memory" => "Save a checkpoint; if memory grows with every step, look for tensors that are kept",
        "gpu_memory.ended" => "Lower the batch size or recompute activations, then start the job from its checkpoint",
        "host_memory" => "Save a checkpoint; lower the number of data loader workers or what they prefetch",
        "disk_full" => "Delete or move old checkpoints and logs of this file system",
        "straggler.slow" => "Compare clock, temperature and power of the GPU with its peers, or run the job without it",
        "straggler.waits" => "Look at the rank on this GPU: its data, its part of the model, and its machine",
        "straggler.shared" => "End the other process or move it to another GPU",
        "uneven" => "Compare power limit, temperature and application clocks of the GPU with its peers",
        "starvation" => "Profile one step to see what the GPUs wait for: no limit of the machine explains it",
        "unused" => "End the job if it needs no GPU, or request fewer GPUs for it",
        "idle" => "End the processes that hold the GPUs if nobody needs them",
        _ => return None,
    })
}

/// An XID that the catalog lacks, or one without a number.
pub(crate) const UNKNOWN_XID: &str = "Look at the driver's message about it with dmesg";

pub(crate) const POWER_BRAKE: &str = "Check the power supplies of the machine and the power of its rack";
pub(crate) const POWER_LIMIT: &str =
    "Compare the limits (nvidia-smi -q -d POWER, amd-smi static -l), and ask whether this one is on purpose";

pub(crate) const CLOCKS_SET: &str =
    "Compare the clocks with nvidia-smi -q -d CLOCK, and reset those of this GPU with nvidia-smi -rac and -rgc";

pub(crate) const PCIE_GENERATION: &str =
    "Restart the machine to train the link anew; if it stays slow, check its BIOS settings and the riser";
pub(crate) const NVLINK_DOWN: &str =
    "Stop the jobs on the GPU and reset it to train its links anew; ask the vendor if they stay down";
pub(crate) const NVLINK_TRAFFIC: &str =
    "Compare NCCL_DEBUG=INFO of its rank with that of its peers: NCCL reports the path that it uses";

pub(crate) const MEMORY_FULL: &str = "Lower the number of data loader workers or what they prefetch";
pub(crate) const KILLED: &str =
    "Lower the number of data loader workers or what they prefetch, or give the job more memory; then start it again";

pub(crate) const DISK_BUSY: &str = "Read from a faster or a local disk, or in larger pieces: this one is at its limit";
pub(crate) const DISK_WAITS: &str = "Prefetch more, or read from a faster or a local disk: tasks wait for disks";
pub(crate) const MOUNT_WAITS: &str =
    "Look at the file server of this mount and its other users, or read the data from local disks";
pub(crate) const CORES_FULL: &str = "Move decoding to the GPU, or give the job more cores: the cores are full";
pub(crate) const CORES_AWAITED: &str = "Give the job more cores, or run fewer threads: tasks wait for CPUs";
pub(crate) const QUOTA: &str = "Raise the CPU limit of the container or cgroup: its processes are throttled";
pub(crate) const NETWORK_FULL: &str = "Keep the data on local disks: the network receives its maximum so far";

pub(crate) const RANK_DATA: &str =
    "Look at the data of this rank: its files, their disk, and the workers that load them";
pub(crate) const GUEST: &str = "End the other process on the GPU or move it, if it is not part of the job";

#[cfg(test)]
mod tests {
    use super::*;

    const BY_CAUSE: [&str; 18] = [
        UNKNOWN_XID,
        POWER_BRAKE,
        POWER_LIMIT,
        CLOCKS_SET,
        PCIE_GENERATION,
        NVLINK_DOWN,
        NVLINK_TRAFFIC,
        MEMORY_FULL,
        KILLED,
        DISK_BUSY,
        DISK_WAITS,
        MOUNT_WAITS,
        CORES_FULL,
        CORES_AWAITED,
        QUOTA,
        NETWORK_FULL,
        RANK_DATA,
        GUEST,
    ];

    #[test]
    fn every_rule_has_a_next_step_of_one_line() {
        let rules = crate::DETECTORS.iter().flat_map(|entry| entry.rules).map(|(rule, _)| *rule);
        let steps = rules.map(|rule| of_rule(rule).unwrap_or_else(|| panic!("{rule} has no next step")));
        for step in steps.chain(BY_CAUSE) {
            assert!(step.starts_with(char::is_uppercase) && step.len() <= 120, "{step}");
            assert!(!step.ends_with('.') && !step.contains('\n') && !step.contains("{since}"), "{step}");
        }
        assert_eq!(of_rule("none"), None);
    }

    #[test]
    fn an_old_record_has_no_next_step() {
        let old = r#"{"id":"a","kind":"b","rule":"c","severity":"note","subject":[],"since":1,"told":2,"sentence":"d",
            "evidence":[]}"#;
        let old: shared::finding::Finding = serde_json::from_str(old).expect("a finding");
        assert_eq!(old.next, "");
        assert!(!serde_json::to_string(&old).expect("JSON").contains("next"));
    }
}
