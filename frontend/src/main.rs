//! Starts the page.

fn main() {
    // A fault ends the page, which says so; what the fault is stands in the browser's console.
    std::panic::set_hook(Box::new(|panic| web_sys::console::error_1(&panic.to_string().into())));
    leptos::mount::mount_to_body(frontend::app::App);
}
