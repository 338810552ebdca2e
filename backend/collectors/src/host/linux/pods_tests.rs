//! Tests of GPUs of pods, with a kubelet in this process that answers as a test wants.

use super::messages::{
    ClaimResource, ContainerDevices, ContainerResources, DynamicResource, PodListResponse, PodResources,
};
use super::*;
use crate::OwnOptions;
use prost::Message;
use prost::bytes::Bytes;

/// Behavior of the kubelet.
#[derive(Clone)]
enum Play {
    Lists(PodListResponse),
    /// Accepts the connection and says nothing.
    Hangs,
    /// Answers with more than is taken.
    Floods,
    /// Answers with bytes that are no message.
    Lies,
    /// Fails with this gRPC status.
    Status(u32),
}

/// A kubelet on a socket of its own, until this is dropped.
struct Kubelet {
    folder: tempfile::TempDir,
    _runtime: Runtime,
}

impl Kubelet {
    fn start(play: Play) -> Kubelet {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = {
            let _entered = runtime.enter();
            tokio::net::UnixListener::bind(folder.path().join("kubelet.sock")).expect("a socket")
        };
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, play.clone()));
            }
        });
        Kubelet { folder, _runtime: runtime }
    }

    fn options(&self) -> Options {
        let options = Options {
            own: OwnOptions::default().with(&SOCKET_ROW, self.folder.path().join("kubelet.sock")),
            ..Options::default()
        };
        for (number, identity) in ["GPU-a", "GPU-b", "0000:c1:00.0"].into_iter().enumerate() {
            options.gpu_numbers.claim(identity, number as u32);
        }
        options
    }

    fn part(&self) -> Part {
        open(&self.options(), &Roots::default()).expect("a socket").remove(0)
    }
}

async fn serve(stream: UnixStream, play: Play) {
    if matches!(play, Play::Hangs) {
        return std::future::pending().await;
    }
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        assert_eq!(request.uri().path(), "/v1.PodResourcesLister/List");
        tokio::spawn(answer(respond, play.clone()));
    }
}

async fn answer(mut respond: h2::server::SendResponse<Bytes>, play: Play) {
    let bytes = match play {
        Play::Lists(list) => list.encode_to_vec(),
        Play::Floods => vec![0; crate::read::grpc::MAX_MESSAGE_BYTES + 1],
        Play::Lies => b"\xff\xff\xff junk".to_vec(),
        Play::Status(status) => {
            let response = http::Response::builder().header("grpc-status", status).header("grpc-message", "no");
            drop(respond.send_response(response.body(()).expect("a head"), true));
            return;
        }
        Play::Hangs => return,
    };
    let Ok(mut stream) = respond.send_response(http::Response::new(()), false) else { return };
    let mut framed = vec![0];
    framed.extend((bytes.len() as u32).to_be_bytes());
    framed.extend(bytes);
    // After a flood nobody reads on, and sending fails.
    let _ = stream.send_data(Bytes::from(framed), false);
    let trailers =
        http::HeaderMap::from_iter([("grpc-status".parse().expect("a name"), "0".parse().expect("a value"))]);
    let _ = stream.send_trailers(trailers);
}

fn pod(namespace: &str, name: &str, containers: &[&[&str]]) -> PodResources {
    let devices = |ids: &&[&str]| ContainerResources {
        devices: vec![ContainerDevices { ids: ids.iter().map(|id| (*id).into()).collect() }],
        claims: Vec::new(),
    };
    let containers = containers.iter().map(devices).collect();
    PodResources { name: name.into(), namespace: namespace.into(), containers }
}

fn tick(part: &mut Part, out: &mut Out, second: u64) -> (Vec<String>, Result<(), CollectError>) {
    out.begin(Duration::from_secs(second));
    let outcome = part.collector.collect(out);
    (out.present().into_iter().map(|(tag, value)| format!("{tag} {value}")).collect(), outcome)
}

#[test]
fn gpus_of_pods_are_read_by_uuid_and_by_address() {
    let kubelet = Kubelet::start(Play::Lists(PodListResponse {
        pods: vec![
            pod("training", "train-0", &[&["GPU-a"], &["GPU-a", "GPU-b::1"]]),
            pod("serving", "llm-6f9c.x", &[&["GPU-b::0"], &["0000:C1:00.0"]]),
            pod("kube-system", "coredns", &[&[]]),
            pod("other", "nic", &[&["0000:17:00.1", "MIG-1"]]),
        ],
    }));
    let (mut part, mut out) = (kubelet.part(), Out::default());
    let expected = [
        "gpu.0.pod.training/train-0.heldByPod 1",
        "gpu.1.pod.serving/llm-6f9c.x.heldByPod 1",
        "gpu.1.pod.training/train-0.heldByPod 1",
        "gpu.2.pod.serving/llm-6f9c.x.heldByPod 1",
    ];
    assert_eq!(tick(&mut part, &mut out, 0), (expected.map(String::from).to_vec(), Ok(())));
    assert_eq!(tick(&mut part, &mut out, 5), (Vec::new(), Ok(())), "it is asked every 10 s");
    assert_eq!(tick(&mut part, &mut out, 10).0.len(), 4);
}

#[test]
fn gpus_of_gke_are_known_by_their_device_files() {
    let kubelet = Kubelet::start(Play::Lists(PodListResponse {
        pods: vec![
            pod("training", "train-0", &[&["nvidia1"]]),
            pod("serving", "llm", &[&["nvidia0/vgpu1"]]),
            pod("other", "part", &[&["nvidia0/gi2", "nvidia1/gi0/vgpu1", "nvidia7", "nvidia0x"]]),
        ],
    }));
    let mut part = part_with_files(&kubelet);
    let expected = ["gpu.0.pod.training/train-0.heldByPod 1", "gpu.1.pod.serving/llm.heldByPod 1"];
    assert_eq!(tick(&mut part, &mut Out::default(), 0), (expected.map(String::from).to_vec(), Ok(())));
}

#[test]
fn gpus_of_claims_are_known_by_their_device_files() {
    let claim = |driver: &str, device: &str| ClaimResource { driver: driver.into(), device: device.into() };
    let claims = [
        claim("gpu.nvidia.com", "gpu-1"),
        claim("gpu.nvidia.com", "gpu-0-mig-1g10gb-9-0"),
        claim("gpu.example.com", "gpu-0"),
    ];
    let claimed = DynamicResource { devices: claims.to_vec() };
    let container = ContainerResources { devices: Vec::new(), claims: vec![claimed] };
    let claiming = PodResources { name: "llm".into(), namespace: "serving".into(), containers: vec![container] };
    let kubelet = Kubelet::start(Play::Lists(PodListResponse { pods: vec![claiming] }));
    let (held, outcome) = tick(&mut part_with_files(&kubelet), &mut Out::default(), 0);
    assert_eq!((held, outcome), (vec!["gpu.0.pod.serving/llm.heldByPod 1".to_string()], Ok(())));
}

/// CONSTRUCTED from the sources of Intel's plugin and of the drivers of Intel and AMD for claims: no machine with them was
/// at hand.
#[test]
fn gpus_of_intel_and_claims_of_amd_are_known_by_their_cards() {
    let claim = |driver: &str, device: &str| ClaimResource { driver: driver.into(), device: device.into() };
    let claiming = |name: &str, claims: &[ClaimResource]| {
        let claimed = DynamicResource { devices: claims.to_vec() };
        let container = ContainerResources { devices: Vec::new(), claims: vec![claimed] };
        PodResources { name: name.into(), namespace: "ml".into(), containers: vec![container] }
    };
    let (intel, amd) = ("gpu.intel.com", "gpu.amd.com");
    let kubelet = Kubelet::start(Play::Lists(PodListResponse {
        pods: vec![
            pod("ml", "plugin", &[&["card1-0"]]),
            pod("ml", "shares", &[&["card1-1"]]),
            pod("ml", "none", &[&["card7-0", "card1-DP-1", "card1-", "all", "card-0"]]),
            claiming("amd", &[claim(amd, "gpu-0-128")]),
            claiming("divided", &[claim(amd, "gpu-3-131"), claim(amd, "gpu-4-132"), claim(amd, "gpu-vfio-0")]),
            claiming("intel", &[claim(intel, "0000-4d-00-0-0x0bda")]),
            claiming("other", &[claim(intel, "0000-4d-00-0"), claim(intel, "0000-4d-00-0x"), claim(amd, "gpu-0")]),
        ],
    }));
    let cards = kubelet.folder.path().join("sys/class/drm");
    let card = |number: u32, driver: &str, address: &str, mode: Option<&str>| {
        let device = cards.join(format!("card{number}/device"));
        std::fs::create_dir_all(&device).expect("a folder");
        std::fs::write(device.join("uevent"), format!("DRIVER={driver}\nPCI_SLOT_NAME={address}\n")).expect("a file");
        if let Some(mode) = mode {
            std::fs::write(device.join("current_compute_partition"), format!("{mode}\n")).expect("a file");
        }
    };
    card(0, "amdgpu", "0000:C1:00.0", Some("SPX"));
    card(1, "xe", "0000:4d:00.0", None);
    card(3, "amdgpu", "0000:c6:00.0", Some("CPX"));
    let options = kubelet.options();
    options.gpu_numbers.claim("0000:4d:00.0", 3);
    options.gpu_numbers.claim("0000:c6:00.0", 4);
    let mut part = open(&options, &Roots::below(kubelet.folder.path())).expect("a socket").remove(0);
    let expected = [
        "gpu.2.pod.ml/amd.heldByPod 1",
        "gpu.3.pod.ml/intel.heldByPod 1",
        "gpu.3.pod.ml/plugin.heldByPod 1",
        "gpu.3.pod.ml/shares.heldByPod 1",
    ];
    assert_eq!(tick(&mut part, &mut Out::default(), 0), (expected.map(String::from).to_vec(), Ok(())));
}

/// The collector on a machine whose second GPU has the first device file.
fn part_with_files(kubelet: &Kubelet) -> Part {
    let gpus = kubelet.folder.path().join("proc/driver/nvidia/gpus");
    for (address, uuid, minor) in [("0000:55:00.0", "GPU-a", 1), ("0000:af:00.0", "GPU-b", 0)] {
        std::fs::create_dir_all(gpus.join(address)).expect("a folder");
        let text = format!(
            "Model: \t\t NVIDIA L4\nIRQ:   \t\t 63\nGPU UUID: \t {uuid}\nBus Type: \t PCIe\n\
             Bus Location: \t {address}\nDevice Minor: \t {minor}\nGPU Excluded:\t No\n"
        );
        std::fs::write(gpus.join(address).join("information"), text).expect("a file");
    }
    open(&kubelet.options(), &Roots::below(kubelet.folder.path())).expect("a socket").remove(0)
}

#[test]
fn a_pod_that_cannot_be_named_is_dropped_and_counted() {
    let pods = vec![pod("a/b", "x", &[&["GPU-a"]]), pod("a", "UPPER", &[&["GPU-b"]]), pod("a", "x", &[&["GPU-b"]])];
    let kubelet = Kubelet::start(Play::Lists(PodListResponse { pods }));
    let (held, outcome) = tick(&mut kubelet.part(), &mut Out::default(), 0);
    assert_eq!(held, ["gpu.1.pod.a/x.heldByPod 1"]);
    assert!(outcome.is_err_and(|error| error.partial && error.reason.starts_with("2 GPUs of pods were dropped")));
    let many: Vec<_> = (0..600).map(|n| pod("a", &format!("x-{n}"), &[&["GPU-a", "GPU-b"]])).collect();
    let kubelet = Kubelet::start(Play::Lists(PodListResponse { pods: many }));
    let (held, outcome) = tick(&mut kubelet.part(), &mut Out::default(), 0);
    assert_eq!(held.len(), MAX_HELD);
    assert!(outcome.is_err_and(|error| error.reason.starts_with("176 GPUs of pods")));
}

#[test]
fn a_kubelet_that_hangs_floods_or_lies_gives_a_reason() {
    for (play, reason) in [
        (Play::Hangs, "timed out after"),
        (Play::Floods, "is longer than 4194304 bytes"),
        (Play::Lies, "the response to List cannot be decoded"),
        (Play::Status(8), "List failed with gRPC status 8: no"),
        (Play::Status(12), "the program does not support the call"),
    ] {
        let kubelet = Kubelet::start(play);
        let (held, outcome) = tick(&mut kubelet.part(), &mut Out::default(), 0);
        assert!(held.is_empty());
        let error = outcome.expect_err(reason);
        assert!(!error.partial && error.reason.contains(reason), "{reason}: {error:?}");
        assert!(error.reason.contains("kubelet.sock: "), "{error:?}");
    }
    let kubelet = Kubelet::start(Play::Lies);
    let (mut part, socket) = (kubelet.part(), kubelet.folder.path().join("kubelet.sock"));
    drop(kubelet._runtime);
    assert!(tick(&mut part, &mut Out::default(), 0).1.is_err_and(|error| error.reason.ends_with("connection refused")));
    std::fs::remove_file(&socket).expect("it is there");
    let own = OwnOptions::default().with(&SOCKET_ROW, &socket);
    let error = open(&Options { own, ..Options::default() }, &Roots::default()).err().expect("no kubelet");
    assert_eq!((error.kind, error.reason.as_str()), (OpenErrorKind::Absent, "there is no kubelet here"));
}
