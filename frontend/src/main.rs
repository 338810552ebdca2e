//! Starts the page.

fn main() {
    #[cfg(feature = "messages")]
    std::panic::set_hook(Box::new(|panic| web_sys::console::error_1(&panic.to_string().into())));
    leptos::mount::mount_to_body(frontend::app::App);
}
