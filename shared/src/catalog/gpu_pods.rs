//! GPUs that Kubernetes has given to pods.
//!
//! The series of a pod names GPU, namespace and pod: `0.pod.training/train-0`.

use super::MetricDef;

/// A pod holds the GPU.
pub static HELD_BY_POD: MetricDef = MetricDef::state("gpu.{pod}.heldByPod")
    .title("GPU held by a pod")
    .on("gpu.pods", "GPU {pod}")
    .help("1 where the kubelet has given the GPU to a pod, as in gpu.0.pod.training/train-0.heldByPod, whether a process uses it or not; asked for every 10 s. List of v1.PodResourcesLister on the kubelet's socket; of a MIG device nothing is told.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[&HELD_BY_POD];
