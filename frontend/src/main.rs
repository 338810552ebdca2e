//! Starts the page.

fn main() {
    // A panic stops the page, which then shows that. The browser's console gets the message of the panic.
    std::panic::set_hook(Box::new(|panic| web_sys::console::error_1(&panic.to_string().into())));
    leptos::mount::mount_to_body(frontend::app::App);
    // The style sheet shows this sentence unless it is removed here.
    if let Some(refused) = web_sys::window().and_then(|w| w.document()).and_then(|d| d.get_element_by_id("refused")) {
        refused.remove();
    }
}
