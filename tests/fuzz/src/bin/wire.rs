//! Decodes arbitrary bytes as a message to the page and from the page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shared::wire;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(wire::Received::Control(message)) = wire::decode_server(bytes) {
        let _ = wire::encode(&message); // A decoded message can be encoded again.
    }
    if let Ok(message) = wire::decode_page(bytes) {
        assert_eq!(wire::decode_page(&wire::encode(&message)), Ok(message));
    }
});
