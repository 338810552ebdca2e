//! The four messages of remote write 1.0, and the body of a request: protobuf, compressed with snappy's block format.

use prost::Message;

/// The body of a request.
#[derive(Clone, PartialEq, Message)]
pub struct WriteRequest {
    /// Series and their samples; each series comes once.
    #[prost(message, repeated, tag = "1")]
    pub timeseries: Vec<TimeSeries>,
}

/// One series with its samples, oldest first.
#[derive(Clone, PartialEq, Message)]
pub struct TimeSeries {
    /// In order of name; the metric's name is the label `__name__`.
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<Label>,
    /// In order of time; there is at least one.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
}

/// A label; neither is empty.
#[derive(Clone, PartialEq, Message)]
pub struct Label {
    /// Letters, digits and underscores; `__name__` is that of the metric.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Any text.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A value and its time.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Sample {
    /// The value, finite.
    #[prost(double, tag = "1")]
    pub value: f64,
    /// Milliseconds since the Unix epoch.
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}

impl WriteRequest {
    /// The bytes of the request's body.
    ///
    /// # Panics
    /// Never for a request: the compressor refuses only 4 GiB.
    pub fn pack(&self) -> Vec<u8> {
        let plain = self.encode_to_vec();
        snap::raw::Encoder::new().compress_vec(&plain).expect("a request is far below 4 GiB")
    }

    /// Reads a body; none when it is damaged.
    pub fn unpack(body: &[u8]) -> Option<Self> {
        let plain = snap::raw::Decoder::new().decompress_vec(body).ok()?;
        WriteRequest::decode(&plain[..]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let label = |name: &str, value: &str| Label { name: name.into(), value: value.into() };
        let series = TimeSeries {
            labels: vec![label("__name__", "up"), label("job", "a")],
            samples: vec![Sample { value: 1.5, timestamp: 1000 }],
        };
        let request = WriteRequest { timeseries: vec![series] };
        // Written out by hand from the field numbers: a list of series, of labels, of samples.
        let plain = b"\x0a\x28\x0a\x0e\x0a\x08__name__\x12\x02up\x0a\x08\x0a\x03job\x12\x01a\x12\x0c\x09\0\0\0\0\0\0\xf8\x3f\x10\xe8\x07";
        assert_eq!(request.encode_to_vec(), plain);
        assert_eq!(WriteRequest::unpack(&request.pack()), Some(request.clone()));
        let packed = request.pack();
        for cut in 0..packed.len() {
            assert_ne!(WriteRequest::unpack(&packed[..cut]), Some(request.clone()));
        }
    }
}
