//! GPUs that the kubelet has given to pods: `List` of `v1.PodResourcesLister` on its socket.
//!
//! The kubelet knows which pod holds which device before any process of the pod opens it. Device numbers are those of
//! the plugins: a UUID for NVIDIA's, the name of the device file for that of GKE, a PCI address for AMD's, the name of the
//! card for Intel's. Claims name the device file of NVIDIA's GPUs, the card of AMD's and the PCI address of Intel's.

use crate::read::grpc::{Rpc, RpcFailure};
use crate::read::{drm, sysfs};
use crate::{CollectError, Collector, OpenError, OpenErrorKind, OptionRow, Options, Out, Part, Roots};
use inventory::GpuNumbers;
use shared::catalog::gpu_pods;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// Where the kubelet listens, unless it has another folder.
const SOCKET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";
const SERVICE: &str = "v1.PodResourcesLister";

/// Interval between two lists. Slightly short, so that a tick that is marginally early is not skipped.
const LIST_INTERVAL: Duration = Duration::from_millis(9_900);

/// Tests run beside many others, and most of them are not about it.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 3_000 } else { 500 });
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of pairs of a GPU and a pod: several pods can share each GPU.
const MAX_HELD: usize = 1_024;

static SOCKET_ROW: OptionRow =
    OptionRow::path("socket", "Socket of the kubelet's pod resources, if it is not in /var/lib/kubelet");

/// Keys below `[collectors.pods]`.
pub(crate) static OPTIONS: &[&OptionRow] = &[&SOCKET_ROW];

/// The messages of the service, by field number, limited to those used here.
mod messages {
    use prost::Message;

    /// Requests the list.
    #[derive(Clone, PartialEq, Message)]
    pub(super) struct PodListRequest {}

    /// The pods of the node.
    #[derive(Clone, PartialEq, Message)]
    pub(super) struct PodListResponse {
        #[prost(message, repeated, tag = "1")]
        pub pods: Vec<PodResources>,
    }

    /// A pod.
    #[derive(Clone, PartialEq, Message)]
    pub(super) struct PodResources {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(string, tag = "2")]
        pub namespace: String,
        #[prost(message, repeated, tag = "3")]
        pub containers: Vec<ContainerResources>,
    }

    /// A container of a pod.
    #[derive(Clone, PartialEq, Message)]
    pub(super) struct ContainerResources {
        #[prost(message, repeated, tag = "2")]
        pub devices: Vec<ContainerDevices>,
        #[prost(message, repeated, tag = "5")]
        pub claims: Vec<DynamicResource>,
    }

    /// A claim, by which drivers give devices in the place of plugins (Dynamic Resource Allocation).
    #[derive(Clone, PartialEq, Message)]
    pub(super) struct DynamicResource {
        #[prost(message, repeated, tag = "4")]
        pub devices: Vec<ClaimResource>,
    }

    /// A device of a claim.
    #[derive(Clone, PartialEq, Message)]
    pub(super) struct ClaimResource {
        #[prost(string, tag = "2")]
        pub driver: String,
        #[prost(string, tag = "4")]
        pub device: String,
    }

    /// Devices of one kind, such as `nvidia.com/gpu`.
    #[derive(Clone, PartialEq, Message)]
    pub(super) struct ContainerDevices {
        #[prost(string, repeated, tag = "2")]
        pub ids: Vec<String>,
    }
}

/// Opens the collector, if there is a kubelet. Nothing is sent yet.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let socket = options.own.path(&SOCKET_ROW).unwrap_or(Path::new(SOCKET)).to_path_buf();
    let tried = vec![socket.display().to_string()];
    if let Err(error) = std::fs::metadata(&socket) {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => "run Watchglass as root: the kubelet's folder is root's",
            _ => {
                "on a node of Kubernetes mount the folder of this socket, or name it with socket under [collectors.pods]"
            }
        };
        let kind = if error.kind() == ErrorKind::NotFound { OpenErrorKind::Absent } else { OpenErrorKind::Denied };
        let reason = match kind {
            OpenErrorKind::Absent => "there is no kubelet here".into(),
            _ => format!("{}: {error}", socket.display()),
        };
        return Err(OpenError { kind, tried, reason, remedy: remedy.into() });
    }
    let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(|error| OpenError {
        kind: OpenErrorKind::Failed,
        tried: tried.clone(),
        reason: format!("the system provides no socket: {error}"),
        remedy: "raise the limit of open files: ulimit -n".into(),
    })?;
    let (roots, numbers) = (roots.clone(), options.gpu_numbers.clone());
    let pods = Pods { runtime, socket, roots, numbers, listed: None, outcome: Ok(()) };
    Ok(Part::only(tried, pods))
}

/// h2 needs an async runtime. It costs no thread, and runs only during a reading.
struct Pods {
    runtime: Runtime,
    socket: PathBuf,
    roots: Roots,
    numbers: Arc<GpuNumbers>,
    /// Time of the last list, and its outcome, which is repeated between lists.
    listed: Option<Duration>,
    outcome: Result<(), CollectError>,
}

impl Collector for Pods {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let now = out.at();
        if self.listed.is_some_and(|then| now.saturating_sub(then) < LIST_INTERVAL) {
            return self.outcome.clone();
        }
        self.listed = Some(now);
        let listed = self.runtime.block_on(list(&self.socket));
        self.outcome = match listed {
            Ok(pods) => self.put(pods, out),
            Err(failure) => Err(CollectError::failed(format!("{}: {failure}", self.socket.display()))),
        };
        self.outcome.clone()
    }
}

impl Pods {
    fn put(&self, list: messages::PodListResponse, out: &mut Out) -> Result<(), CollectError> {
        let mut held: BTreeSet<(u32, String)> = BTreeSet::new();
        let mut dropped = 0;
        let ids = |pod: &messages::PodResources| -> Vec<String> {
            let given = pod.containers.iter().flat_map(|own| &own.devices).flat_map(|devices| &devices.ids);
            let claimed = pod.containers.iter().flat_map(|own| &own.claims).flat_map(|claim| &claim.devices);
            given.cloned().chain(claimed.filter_map(id_of_claimed)).collect()
        };
        let has = |name: &str| list.pods.iter().flat_map(ids).any(|id| id.starts_with(name));
        let mut names = if has(DEVICE_FILE) { uuids_by_file(&self.roots.proc) } else { BTreeMap::new() };
        if has(CARD) {
            names.extend(addresses_by_card(&self.roots.sys));
        }
        for pod in &list.pods {
            let gpus: BTreeSet<u32> = ids(pod).iter().filter_map(|id| self.gpu(id, &names)).collect();
            if gpus.is_empty() {
                continue;
            }
            if !is_name(&pod.namespace, 63) || !is_name(&pod.name, 253) {
                dropped += gpus.len();
                continue;
            }
            for gpu in gpus {
                match held.len() < MAX_HELD {
                    true => {
                        held.insert((gpu, format!("{}/{}", pod.namespace, pod.name)));
                    }
                    false => dropped += 1,
                }
            }
        }
        for (gpu, pod) in held {
            out.put(&gpu_pods::HELD_BY_POD, format!("{gpu}.pod.{pod}").as_str(), 1.0);
        }
        match dropped {
            0 => Ok(()),
            _ => Err(CollectError::partial(format!(
                "{dropped} GPUs of pods were dropped: more than {MAX_HELD}, or a pod without a valid name"
            ))),
        }
    }

    /// The number of the GPU with this device number. `names` has the UUIDs and addresses of device files and cards. Where
    /// pods take turns, NVIDIA's plugin adds `::N`, that of GKE `/vgpuN`; Intel's always adds `-N`. Other devices, and parts
    /// of a GPU (MIG, which GKE calls `nvidia0/gi1`), have none.
    fn gpu(&self, id: &str, names: &BTreeMap<String, String>) -> Option<u32> {
        let id = id.split_once("::").or_else(|| id.split_once("/vgpu")).map_or(id, |(id, _)| id);
        let id = card_of_shared(id).unwrap_or(id);
        let id = names.get(id).map_or(id, String::as_str);
        self.numbers.number_of(id).or_else(|| self.numbers.number_of(&id.to_lowercase()))
    }
}

/// Name of the device files of NVIDIA's GPUs, before their number.
const DEVICE_FILE: &str = "nvidia";
/// Name of the folders of cards in /sys, before their number.
const CARD: &str = "card";
/// Drivers of the cards that plugins and claims give to pods.
const CARD_DRIVERS: &[&str] = &["amdgpu", "i915", "xe"];
/// Names of the drivers for claims: NVIDIA's, AMD's and Intel's.
const NVIDIA_CLAIMS: &str = "gpu.nvidia.com";
const AMD_CLAIMS: &str = "gpu.amd.com";
const INTEL_CLAIMS: &str = "gpu.intel.com";
/// Length of a PCI address, bytes.
const PCI_ADDRESS_BYTES: usize = 12;
/// Maximum number of GPUs whose device files are looked up.
const MAX_GPUS: usize = 256;

/// The device number of a claimed GPU. NVIDIA's driver calls `nvidia0` `gpu-0`, and its parts `gpu-0-mig-...`: these have
/// none. AMD's calls it by its card and its render node, `gpu-1-129`. Intel's calls it by its PCI address and its model,
/// `0000-03-00-0-0x56c0`.
fn id_of_claimed(claimed: &messages::ClaimResource) -> Option<String> {
    let device = claimed.device.as_str();
    match claimed.driver.as_str() {
        NVIDIA_CLAIMS => {
            device.strip_prefix("gpu-").filter(|number| is_number(number)).map(|n| format!("{DEVICE_FILE}{n}"))
        }
        AMD_CLAIMS => {
            let (card, node) = device.strip_prefix("gpu-")?.split_once('-')?;
            (is_number(card) && is_number(node)).then(|| format!("{CARD}{card}"))
        }
        INTEL_CLAIMS => {
            let address = device.get(..PCI_ADDRESS_BYTES).filter(|_| device[PCI_ADDRESS_BYTES..].starts_with('-'))?;
            let parts: Vec<&str> = address.split('-').collect();
            let [domain, bus, slot, function] = parts[..] else { return None };
            Some(format!("{domain}:{bus}:{slot}.{function}"))
        }
        _ => None,
    }
}

/// The card of a device number of Intel's plugin: `card1-0`, and `card1-1` for the next pod that shares it.
fn card_of_shared(id: &str) -> Option<&str> {
    let (card, share) = id.split_once('-')?;
    (card.strip_prefix(CARD).is_some_and(is_number) && is_number(share)).then_some(card)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// PCI addresses of GPUs by their cards. AMD's partitions are cards, too, and the first of them has the address of the
/// whole GPU: a GPU that is divided has none.
fn addresses_by_card(sys: &Path) -> BTreeMap<String, String> {
    let is_whole = |card: &drm::Card| {
        let mode = sysfs::text(&card.dir.join("device/current_compute_partition"));
        mode.is_none_or(|mode| mode == "SPX")
    };
    let whole = drm::cards(sys, CARD_DRIVERS).into_iter().take(MAX_GPUS).filter(is_whole);
    whole.map(|card| (format!("{CARD}{}", card.number), card.pci)).collect()
}

/// UUIDs of NVIDIA's GPUs by their device files, as the driver tells: `Device Minor: 0` is `nvidia0`. The order of the
/// files need not be that of the GPUs' numbers.
fn uuids_by_file(proc: &Path) -> BTreeMap<String, String> {
    let gpus = proc.join("driver/nvidia/gpus");
    let gpu = |address: String| {
        let text = sysfs::text(&gpus.join(address).join("information"))?;
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        Some((format!("{DEVICE_FILE}{}", value("Device Minor:")?), value("GPU UUID:")?.to_string()))
    };
    sysfs::names(&gpus).into_iter().take(MAX_GPUS).filter_map(gpu).collect()
}

/// Whether it is a name as Kubernetes has them.
fn is_name(text: &str, most: usize) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    (1..=most).contains(&text.len()) && text.bytes().all(fits)
}

/// Asks the kubelet once, on a connection of its own: the kubelet may be replaced at any time.
async fn list(socket: &Path) -> Result<messages::PodListResponse, RpcFailure> {
    let late = |_| RpcFailure::Broken(format!("the connection timed out after {} ms", CONNECT_TIMEOUT.as_millis()));
    let stream = timeout(CONNECT_TIMEOUT, UnixStream::connect(socket)).await.map_err(late)?;
    let stream = stream.map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused => RpcFailure::Refused,
        _ => RpcFailure::Broken(format!("no connection: {error}")),
    })?;
    let rpc =
        timeout(CONNECT_TIMEOUT, Rpc::start(stream, "localhost", SERVICE, CALL_TIMEOUT)).await.map_err(late)??;
    rpc.call("List", &messages::PodListRequest {}).await
}

#[cfg(test)]
#[path = "pods_tests.rs"]
mod tests;
