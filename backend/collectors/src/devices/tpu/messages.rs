//! Messages of the runtime's metric service `tpu.monitoring.runtime`, by field number, limited to those used here.
//!
//! Fields of a oneof are declared as optional, which decodes the same bytes.

use prost::Message;

/// Requests one metric.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricRequest {
    #[prost(string, tag = "1")]
    pub metric_name: String,
}

/// The answer to a [`MetricRequest`].
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricResponse {
    #[prost(message, optional, tag = "1")]
    pub metric: Option<TpuMetric>,
}

/// Requests all names.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ListRequest {}

/// The names of all supported metrics.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ListResponse {
    #[prost(message, repeated, tag = "1")]
    pub supported: Vec<Supported>,
}

/// One name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Supported {
    #[prost(string, tag = "1")]
    pub metric_name: String,
}

/// A metric: a point for each device, size or other attribute.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TpuMetric {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "3")]
    pub metrics: Vec<Point>,
}

/// One value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Point {
    #[prost(message, optional, tag = "1")]
    pub attribute: Option<Attribute>,
    #[prost(message, optional, tag = "3")]
    pub gauge: Option<Gauge>,
    #[prost(message, optional, tag = "5")]
    pub distribution: Option<Distribution>,
}

/// Distinguishes a point from others.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AttributeValue>,
}

/// Text, a number, or a list of further attributes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributeValue {
    #[prost(string, optional, tag = "1")]
    pub text: Option<String>,
    #[prost(int64, optional, tag = "3")]
    pub int: Option<i64>,
    #[prost(message, optional, tag = "6")]
    pub list: Option<AttributeList>,
}

/// See [`AttributeValue`].
#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributeList {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<Attribute>,
}

/// A single value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Gauge {
    #[prost(double, optional, tag = "1")]
    pub double: Option<f64>,
    #[prost(int64, optional, tag = "2")]
    pub int: Option<i64>,
}

/// Counts by bucket since the program started.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Distribution {
    #[prost(int64, tag = "1")]
    pub count: i64,
    #[prost(double, tag = "2")]
    pub mean: f64,
    #[prost(message, optional, tag = "6")]
    pub bucket_options: Option<BucketOptions>,
    #[prost(int64, repeated, tag = "7")]
    pub bucket_counts: Vec<i64>,
}

/// Upper bounds of buckets.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BucketOptions {
    #[prost(message, optional, tag = "2")]
    pub exponential: Option<Exponential>,
    #[prost(message, optional, tag = "3")]
    pub explicit: Option<Explicit>,
    #[prost(message, optional, tag = "4")]
    pub linear: Option<Linear>,
}

/// Bounds `scale * growth^i`, one more than there are finite buckets.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Exponential {
    #[prost(int32, tag = "1")]
    pub finite: i32,
    #[prost(double, tag = "2")]
    pub growth: f64,
    #[prost(double, tag = "3")]
    pub scale: f64,
}

/// Bounds one by one.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Explicit {
    #[prost(double, repeated, tag = "1")]
    pub bounds: Vec<f64>,
}

/// Bounds `offset + width * i`, one more than there are finite buckets.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Linear {
    #[prost(int32, tag = "1")]
    pub finite: i32,
    #[prost(double, tag = "2")]
    pub width: f64,
    #[prost(double, tag = "3")]
    pub offset: f64,
}
