//! Any program: JSON, signed as in Standard Webhooks, or as a CloudEvent in structured mode.

use super::{Field, Request, Sink, any, post};
use crate::settings::{Key, Settings};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;
use serde_json::{Value, json};
use shared::alert::{Notice, NoticeKind};

pub(super) const SINK: Sink = Sink {
    kind: "webhook",
    help: "an address of your own, and a signing secret: whsec_ and 24 to 64 bytes in base64",
    needs: &[Field::Address, Field::Secret],
    takes: &[Field::OldSecret, Field::Format],
    shows: Field::Address,
    address: None,
    signs: true,
    check: any,
    body,
};

/// The type of an event.
fn event(notice: &Notice) -> &'static str {
    match notice.kind {
        NoticeKind::Firing => "watchglass.alert.fired",
        NoticeKind::Resolved => "watchglass.alert.resolved",
        NoticeKind::Digest => "watchglass.alert.digest",
        NoticeKind::Test => "watchglass.alert.test",
    }
}

/// Letters to encode in the name of a host.
const IN_URN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// The source of the event: the address of the page, without its query; the host's name if there is none.
fn source(notice: &Notice) -> String {
    match notice.link.as_deref().and_then(|link| url::Url::parse(link).ok()) {
        Some(mut url) => {
            url.set_query(None);
            url.set_fragment(None);
            url.to_string()
        }
        None => {
            format!("urn:watchglass:{}", utf8_percent_encode(&notice.host, IN_URN))
        }
    }
}

/// One signature for each key, over id, time and body.
fn signature(keys: &[Key], id: &str, at: i64, body: &[u8]) -> String {
    let signed = keys.iter().map(|key| {
        let mut signing = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key.0));
        signing.update(format!("{id}.{at}.").as_bytes());
        signing.update(body);
        format!("v1,{}", BASE64.encode(signing.sign()))
    });
    signed.collect::<Vec<_>>().join(" ")
}

fn body(notice: &Notice, settings: &Settings, now: i64) -> Vec<Request> {
    let Some(address) = settings.addresses.first() else { return Vec::new() };
    let at = crate::text::rfc3339(notice.at.saturating_mul(1_000));
    let data = serde_json::to_value(notice).unwrap_or(Value::Null);
    let body = if settings.cloud_events {
        json!({
            "specversion": "1.0",
            "id": notice.id,
            "source": source(notice),
            "type": event(notice),
            "subject": if notice.group.is_empty() { &notice.id } else { &notice.group },
            "time": at,
            "datacontenttype": "application/json",
            "data": data,
        })
    } else {
        json!({"type": event(notice), "timestamp": at, "data": data})
    };
    let mut post = post(address.0.clone(), &body);
    if settings.cloud_events {
        post.headers = vec![("content-type", "application/cloudevents+json".into())];
    }
    // Only letters that are valid in a header.
    let id: String = notice.id.chars().filter(char::is_ascii_graphic).collect();
    let signature = signature(&settings.keys, &id, now, &post.body);
    post.headers.extend([("webhook-id", id), ("webhook-timestamp", now.to_string()), ("webhook-signature", signature)]);
    vec![Request::Post(post)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries.
    #[test]
    fn a_signature_is_the_one_that_others_make() {
        let key = Key(BASE64.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("base64"));
        let body = br#"{"test": 2432232314}"#;
        let signed = signature(std::slice::from_ref(&key), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let two = signature(&[key, Key(vec![1; 24])], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(two.split(' ').next(), Some(signed.as_str()));
        assert_eq!(two.split(' ').count(), 2);
    }
}
