//! Calls of the runtime's metric service, on a persistent connection.

use super::messages::{ListRequest, ListResponse, MetricRequest, MetricResponse, TpuMetric};
use crate::read::grpc::{Rpc, RpcFailure};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

const SERVICE: &str = "tpu.monitoring.runtime.RuntimeMetricService";

/// Timeout of a connection; the port is on this machine. Tests run beside many others, and most are not about it.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 3_000 } else { 250 });

/// Timeout of a call. Likewise.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 3_000 } else { 500 });

/// A connection, shared by clones.
#[derive(Clone)]
pub(super) struct Channel(Rpc);

impl Channel {
    pub async fn connect(address: SocketAddr) -> Result<Channel, RpcFailure> {
        let late = |_| RpcFailure::Broken(format!("the connection timed out after {} ms", CONNECT_TIMEOUT.as_millis()));
        let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await.map_err(late)?;
        let stream = stream.map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => RpcFailure::Refused,
            _ => RpcFailure::Broken(format!("no connection: {error}")),
        })?;
        // Without it small requests wait for each other's acknowledgment. An error only costs that time.
        let _ = stream.set_nodelay(true);
        let host = address.to_string();
        let start = Rpc::start(stream, &host, SERVICE, CALL_TIMEOUT);
        Ok(Channel(timeout(CONNECT_TIMEOUT, start).await.map_err(late)??))
    }

    /// One metric; empty if the program has no values for it.
    pub async fn metric(&self, name: &str) -> Result<TpuMetric, RpcFailure> {
        let request = MetricRequest { metric_name: name.into() };
        let response: MetricResponse = self.0.call("GetRuntimeMetric", &request).await?;
        Ok(response.metric.unwrap_or_default())
    }

    /// Names of the metrics that the program supports.
    pub async fn supported(&self) -> Result<Vec<String>, RpcFailure> {
        let response: ListResponse = self.0.call("ListSupportedMetrics", &ListRequest {}).await?;
        Ok(response.supported.into_iter().map(|metric| metric.metric_name).collect())
    }
}
