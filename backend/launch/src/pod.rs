//! The Kubernetes pod of a process, read from the process's files in `/proc`.
//!
//! `/proc/PID/cgroup` has the path of its control group. The kubelet names it by the pod, and the container runtime by
//! the container. From within the container that path is only `/`. Then the pod is read from `/proc/PID/mountinfo`: it
//! is in the path of the file that the kubelet mounts as `/etc/hosts`.

use shared::run::Pod;
use std::fs::File;
use std::io::Read;

/// Maximum bytes read of a file.
const MAX_BYTES: u64 = 256 << 10;

/// Number of digits of a container ID.
const CONTAINER_DIGITS: usize = 64;

/// The pod of a process; None if it is in none, or its files cannot be read.
pub fn read_pod(pid: u32) -> Option<Pod> {
    let read = |name: &str| {
        let mut text = String::new();
        File::open(format!("/proc/{pid}/{name}")).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    };
    let of_group = read("cgroup").as_deref().and_then(in_cgroup);
    of_group.or_else(|| Some(Pod { uid: in_mounts(&read("mountinfo")?)?, container: None }))
}

/// Pod and container in a text of `/proc/PID/cgroup`. With systemd the path is
/// `0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/cri-containerd-ID.scope` (UID with
/// `_`), otherwise `4:memory:/kubepods/burstable/podUID/ID`.
fn in_cgroup(text: &str) -> Option<Pod> {
    text.lines().find_map(|line| {
        let path = line.splitn(3, ':').nth(2)?;
        let (pod, below) = path.split('/').enumerate().find_map(|(at, part)| Some((pod_of_folder(part)?, at + 1)))?;
        let container = path.split('/').nth(below).and_then(|part| {
            let part = part.strip_suffix(".scope").unwrap_or(part);
            let id = part.rsplit('-').next()?;
            (id.len() == CONTAINER_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_string())
        });
        Some(Pod { uid: pod, container })
    })
}

/// The UID of a pod from the name of its control group.
fn pod_of_folder(name: &str) -> Option<String> {
    let (_, behind) = name.strip_suffix(".slice").unwrap_or(name).rsplit_once("pod")?;
    uid(&behind.replace('_', "-"))
}

/// Whether a control group of this name is that of a pod.
pub(crate) fn is_pod_folder(name: &str) -> bool {
    pod_of_folder(name).is_some()
}

/// The pod in a text of `/proc/PID/mountinfo`. Field 4 of the mount on `/etc/hosts` is `.../pods/UID/etc-hosts`.
fn in_mounts(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut columns = line.split(' ').skip(3);
        let (root, mounted_on) = (columns.next()?, columns.next()?);
        let behind = root.strip_suffix("/etc-hosts").filter(|_| mounted_on == "/etc/hosts")?;
        uid(behind.rsplit_once("/pods/")?.1)
    })
}

/// A UID of 32 hexadecimal digits with hyphens at the places of a UUID. Static pods (from a file of the kubelet) have
/// none.
fn uid(text: &str) -> Option<String> {
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    (text.len() == 36 && text.bytes().enumerate().all(fits)).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0d6eb1a6-2d3c-4b9f-8f3e-9a1c2d3e4f50";
    const ID: &str = "8f0c1b2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddeef";

    #[test]
    fn the_pod_and_the_container_are_in_the_path_of_the_control_group() {
        let under = UID.replace('-', "_");
        for text in [
            format!(
                "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{under}.slice/cri-containerd-{ID}.scope\n"
            ),
            format!("0::/../../kubepods-besteffort-pod{under}.slice/crio-{ID}.scope\n"),
            format!("0::/kubepods.slice/kubepods-pod{under}.slice/docker-{ID}.scope/nested\n"),
            format!("12:cpu,cpuacct:/user.slice\n4:memory:/kubepods/burstable/pod{UID}/{ID}\n0::/\n"),
            format!("0::/kubelet/kubepods/pod{UID}/{ID}"),
        ] {
            assert_eq!(in_cgroup(&text), Some(Pod { uid: UID.into(), container: Some(ID.into()) }), "{text}");
        }
        let alone = in_cgroup(&format!("0::/kubepods/pod{UID}\n")).expect("a pod");
        assert_eq!(alone.container, None, "the pod's own group");
        for none in [
            "",
            "0::/\n",
            "0::/user.slice/podman-1.scope\n",
            "0::/kubepods/podstatic/x",
            "pod",
            &format!("0::/libpod-{ID}"),
        ] {
            assert_eq!(in_cgroup(none), None, "{none}");
        }
    }

    #[test]
    fn within_a_container_the_pod_is_in_the_mount_of_its_hosts() {
        let text = format!(
            "702 681 0:60 / /proc rw,nosuid - proc proc rw\n\
             711 681 259:1 /var/lib/kubelet/pods/{UID}/etc-hosts /etc/hosts rw,noatime - ext4 /dev/root rw\n"
        );
        assert_eq!(in_mounts(&text).as_deref(), Some(UID));
        let elsewhere = text.replace(" /etc/hosts ", " /mnt/hosts ");
        assert_eq!((in_mounts(&elsewhere), in_mounts("1 2 3"), in_mounts("")), (None, None, None));
        assert_eq!(read_pod(std::process::id()).map(|pod| pod.uid.len()).unwrap_or(36), 36);
    }
}
