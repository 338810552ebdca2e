//! Starts the page.

fn main() {
    // A panic stops the page, which then says so. The browser's console gets the message of the panic.
    std::panic::set_hook(Box::new(|panic| web_sys::console::error_1(&panic.to_string().into())));
    leptos::mount::mount_to_body(frontend::app::App);
}
