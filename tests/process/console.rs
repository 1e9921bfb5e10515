//! The console of a process, which `tests/console` looks at more closely.
use crate::support::Process;

async fn status(arguments: &[&str]) -> String {
    let page = Process::start(arguments).page("/console").await;
    page.split(' ').nth(1).unwrap().to_owned()
}

/// The client in `page` calls the host `a`.
#[tokio::test]
async fn the_console_is_served_where_only_this_machine_reaches_it_and_under_names_that_are_known() {
    assert_eq!(status(&["--console-host", "b,a"]).await, "200");
    assert_eq!(status(&["--console-host", "b"]).await, "421");
    assert_eq!(status(&[]).await, "421");
    assert_eq!(status(&["--console", "off", "--console-host", "a"]).await, "404");
}
