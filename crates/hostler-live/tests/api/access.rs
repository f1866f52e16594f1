//! Who may do what: every role with every path, and what surrounds it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use expect_test::expect;
use hostler_live::api::{Enrolled, Enrolment, JobPage};
use hostler_live::client::{Access, Client, ClientError, Method};
use hostler_live::host::{TenantView, hash_of};
use hostler_live::server::{self, ADMIN_TOKEN, Certificate};
use hostler_live::store::Role;
use serde_json::{Value, json};

use crate::daemon::{Daemon, ask, job, runtime, settings, submit};

#[test]
fn every_role_may_do_what_it_should_and_nothing_else() {
    let daemon = Daemon::plain();
    let one_time = daemon.token(Role::Agent, "default", "spare");
    let enrols = daemon.token(Role::Agent, "default", "node");
    let own = "hst_of_the_agent".to_owned();
    let node = Enrolment { node: "node".to_owned(), hash: hash_of(&own) };
    let _: Enrolled = daemon.client(&enrols).post("/agents/enrol", &node).unwrap();
    let tokens = [
        daemon.admin.clone(),
        daemon.token(Role::User, "default", "ada"),
        daemon.token(Role::Viewer, "default", "eve"),
        own,
        one_time,
        "hst_wrong".to_owned(),
    ];
    let document: Value = daemon.admin().get("/openapi.json").unwrap();
    let mut matrix = "admin user viewer agent one-time nobody\n".to_owned();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let statuses = tokens.iter().map(|token| try_it(&daemon, token, method, path));
            let statuses: Vec<String> = statuses.map(|status| status.to_string()).collect();
            matrix += &format!("{}  {method} {path}\n", statuses.join(" "));
        }
    }
    expect![[r#"
        admin user viewer agent one-time nobody
        403 403 403 426 403 401  get /api/v1/agent
        403 403 403 400 403 401  get /api/v1/agent/streams/{number}
        403 403 403 403 400 401  post /api/v1/agents/enrol
        200 403 403 403 403 401  get /api/v1/backup
        200 200 200 403 403 401  get /api/v1/events
        200 200 200 403 403 401  get /api/v1/history
        200 200 200 403 403 401  get /api/v1/jobs
        400 400 403 403 403 401  post /api/v1/jobs
        400 400 403 403 403 401  post /api/v1/jobs/change
        404 404 404 403 403 401  get /api/v1/jobs/{id}
        404 404 403 403 403 401  post /api/v1/jobs/{id}/cancel
        404 404 404 403 403 401  get /api/v1/jobs/{id}/explain
        404 404 403 403 403 401  post /api/v1/jobs/{id}/hold
        404 404 404 403 403 401  get /api/v1/jobs/{id}/output
        404 404 403 403 403 401  post /api/v1/jobs/{id}/release
        404 404 403 403 403 401  get /api/v1/jobs/{id}/stream
        200 403 403 403 403 401  get /api/v1/log
        200 200 200 403 403 401  get /api/v1/me
        200 200 200 403 403 401  get /api/v1/nodes
        400 403 403 403 403 401  post /api/v1/nodes/{name}/drain
        404 403 403 403 403 401  post /api/v1/nodes/{name}/undrain
        200 200 200 403 403 401  get /api/v1/openapi.json
        200 200 200 403 403 401  get /api/v1/policy
        400 403 403 403 403 401  put /api/v1/policy
        200 200 200 403 403 401  get /api/v1/reservations
        400 403 403 403 403 401  post /api/v1/reservations
        404 403 403 403 403 401  delete /api/v1/reservations/{name}
        200 200 200 403 403 401  get /api/v1/tenants
        400 403 403 403 403 401  put /api/v1/tenants/{name}
        200 403 403 403 403 401  get /api/v1/tokens
        400 403 403 403 403 401  post /api/v1/tokens
        404 403 403 403 403 401  delete /api/v1/tokens/{id}
        400 400 400 403 403 401  get /api/v1/usage
        200 403 403 403 403 401  get /api/v1/users
        400 403 403 403 403 401  post /api/v1/users
        404 403 403 403 403 401  delete /api/v1/users/{name}
        200 200 200 200 200 200  get /healthz
        200 200 200 403 403 401  get /metrics
        200 200 200 200 200 200  get /readyz
    "#]]
    .assert_eq(&matrix);
}

/// Status of a request that is harmless wherever it is let through.
fn try_it(daemon: &Daemon, token: &str, method: &str, path: &str) -> u16 {
    let mut client = daemon.client(token);
    let path = path.replace("{id}", "999").replace("{name}", "none");
    if path.ends_with("/events") {
        let seen = client.follow("/events", &[], Duration::from_millis(50), |_| true);
        return match seen {
            Ok(()) => 200,
            Err(ClientError::Refused { status, .. }) => status,
            Err(other) => panic!("{other}"),
        };
    }
    let body = matches!(method, "post" | "put").then(|| json!({ "unknown": 1 }));
    let method = method.to_uppercase().parse::<Method>().expect("it is a method");
    ask(&mut client, method, &format!("/{path}"), &[], body.as_ref()).status.as_u16()
}

#[test]
fn tenants_do_not_see_each_other() {
    let daemon = Daemon::plain();
    let mut ada = daemon.client(&daemon.token(Role::User, "vision", "ada"));
    let mut eve = daemon.client(&daemon.token(Role::User, "speech", "eve"));
    let id = submit(&mut ada);
    for path in [format!("/jobs/{id}"), format!("/jobs/{id}/explain"), format!("/jobs/{id}/output")]
    {
        assert_eq!(ask(&mut eve, Method::GET, &path, &[], None).status, 404, "{path}");
    }
    let over = submit(&mut ada);
    let cancel = format!("/jobs/{over}/cancel");
    assert_eq!(ask(&mut ada, Method::POST, &cancel, &[], None).status, 200);
    assert_eq!(ask(&mut ada, Method::POST, &cancel, &[], None).status, 409);
    for id in [id, over] {
        for what in ["cancel", "hold", "release"] {
            let path = format!("/jobs/{id}/{what}");
            assert_eq!(ask(&mut eve, Method::POST, &path, &[], None).status, 404, "{path}");
        }
    }
    for path in ["/jobs", "/jobs?tenant=vision"] {
        let page: JobPage = eve.get(path).unwrap();
        assert_eq!(page.jobs, [], "{path}");
    }
    let names = |client: &mut Client| {
        let tenants: Vec<TenantView> = client.get("/tenants").unwrap();
        tenants.into_iter().map(|tenant| tenant.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut eve), ["speech"]);
    assert_eq!(names(&mut daemon.admin()), ["default", "speech", "vision"]);
    let page: JobPage = daemon.admin().get("/jobs?tenant=vision").unwrap();
    assert_eq!(page.jobs.len(), 1);
    let charged = ask(&mut eve, Method::POST, "/jobs?tenant=vision", &[], Some(&job()));
    assert_eq!(charged.status, 404);
}

#[test]
fn a_revoked_token_is_unknown_and_a_one_time_token_works_once() {
    let daemon = Daemon::plain();
    let token = daemon.token(Role::Agent, "default", "node");
    let node = Enrolment { node: "node".to_owned(), hash: hash_of("own") };
    let own: Enrolled = daemon.client(&token).post("/agents/enrol", &node).unwrap();
    let again = daemon.client(&token).post::<Enrolled>("/agents/enrol", &node);
    assert!(matches!(again, Err(ClientError::Refused { status: 401, .. })));
    let path = format!("/tokens/{}", own.id);
    assert_eq!(ask(&mut daemon.admin(), Method::DELETE, &path, &[], None).status, 204);
    assert_eq!(ask(&mut daemon.client("own"), Method::GET, "/agent", &[], None).status, 401);
}

#[test]
fn one_machine_at_a_time_speaks_for_a_node() {
    let daemon = Daemon::plain();
    let enrol = |token: &str, node: &str| {
        let node =
            json!(Enrolment { node: node.to_owned(), hash: hash_of(&format!("{token} {node}")) });
        ask(&mut daemon.client(token), Method::POST, "/agents/enrol", &[], Some(&node))
    };
    let first = daemon.token(Role::Agent, "default", "gpu-07");
    assert_eq!(enrol(&first, "gpu-08").status, 409, "the token names another node");
    let made = enrol(&first, "gpu-07");
    assert_eq!(made.status, 201);
    let second = daemon.token(Role::Agent, "default", "gpu-07");
    assert_eq!(enrol(&second, "gpu-07").status, 409, "somebody speaks for it");
    let made: Enrolled = serde_json::from_slice(&made.body).unwrap();
    let path = format!("/tokens/{}", made.id);
    assert_eq!(ask(&mut daemon.admin(), Method::DELETE, &path, &[], None).status, 204);
    assert_eq!(enrol(&second, "gpu-07").status, 201);
}

#[test]
fn a_secret_that_somebody_has_cannot_be_enrolled_again() {
    let daemon = Daemon::plain();
    let token = daemon.token(Role::Agent, "default", "node");
    for hash in [hash_of(&daemon.admin), hash_of(&token), "f".repeat(63), "F".repeat(64)] {
        let node = json!({ "node": "node", "hash": hash });
        let mut agent = daemon.client(&token);
        let answer = ask(&mut agent, Method::POST, "/agents/enrol", &[], Some(&node));
        assert_eq!(answer.status, 400);
    }
    submit(&mut daemon.admin());
}

#[test]
fn an_admin_can_always_come_in() {
    use std::os::unix::fs::PermissionsExt as _;
    let daemon = Daemon::plain();
    let file = daemon.data().join(ADMIN_TOKEN);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), daemon.admin);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let revoke = |id: u32| {
        let path = format!("/tokens/{id}");
        ask(&mut daemon.admin(), Method::DELETE, &path, &[], None).status.as_u16()
    };
    assert_eq!(revoke(1), 409, "it is the last one");
    let other = daemon.token(Role::Admin, "default", "eve");
    assert_eq!(revoke(1), 204);
    let path = "/tokens/2";
    assert_eq!(ask(&mut daemon.client(&other), Method::DELETE, path, &[], None).status, 409);
}

#[test]
fn an_admin_who_lost_the_token_gets_another_while_the_daemon_does_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let runtime = runtime();
    let start = || runtime.block_on(server::start(settings(folder, Certificate::None)));
    runtime.block_on(start().unwrap().stop()).unwrap();
    let file = server::reset_admin(folder, None).unwrap();
    let token = std::fs::read_to_string(file).unwrap();
    let running = start().unwrap();
    assert_eq!(running.first_token(), None);
    let access = Access::new(&running.url(), &token, None).unwrap();
    assert!(Client::new(access).unwrap().get::<Value>("/tokens").is_ok());
    runtime.block_on(running.stop()).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    assert!(server::reset_admin(folder, None).is_err(), "there is no store");
}

#[test]
fn a_certificate_is_made_kept_private_and_pinned() {
    use std::os::unix::fs::PermissionsExt as _;
    let daemon = Daemon::start(Certificate::Kept);
    submit(&mut daemon.admin());
    let other = format!("sha256:{}", "0".repeat(64));
    let access = Access::new(&daemon.running().url(), &daemon.admin, Some(&other)).unwrap();
    let wrong = Client::new(access).unwrap().get::<Value>("/policy");
    assert!(matches!(wrong, Err(ClientError::WrongServer { .. })), "{wrong:?}");
    for file in ["tls-key.pem", "hostler.db"] {
        let mode = std::fs::metadata(daemon.data().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn without_tls_only_loopback_is_served() {
    let mut settings = settings(Path::new("unused"), Certificate::None);
    settings.listen = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = runtime().block_on(server::start(settings)).err().unwrap();
    expect!["`--plain` is for loopback only, not for `0.0.0.0:0`; leave it out"]
        .assert_eq(&refused.to_string());
}

#[test]
fn too_much_at_once_is_refused() {
    let daemon = Daemon::with_rate(1000.0);
    let large = json!({ "command": ["x".repeat(300 << 10)] });
    let answer = ask(&mut daemon.admin(), Method::POST, "/jobs", &[], Some(&large));
    assert_eq!(answer.status, 413);
    let mut guesser = daemon.client("hst_wrong");
    let statuses: Vec<u16> = (0..80)
        .map(|_| ask(&mut guesser, Method::GET, "/jobs", &[], None).status.as_u16())
        .collect();
    assert!(statuses.starts_with(&[401; 20]), "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
    // Whoever has a token does not suffer from those who guess.
    submit(&mut daemon.admin());
}

#[test]
fn an_answer_before_the_body_is_read_says_that_the_connection_ends() {
    use std::io::{Read as _, Write as _};
    let daemon = Daemon::with_rate(1.0);
    let (address, admin) = (daemon.running().url(), daemon.admin.clone());
    let address = address.trim_start_matches("http://").to_owned();
    let post = |token: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        // The body does not come: an answer that waits for it never does, either.
        write!(
            stream,
            "POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: 100\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.to_lowercase()
    };
    let refused = post("nobody");
    assert!(refused.starts_with("http/1.1 401") && refused.contains("connection: close"));
    let mut client = daemon.client(&admin);
    while ask(&mut client, Method::GET, "/nodes", &[], None).status != 429 {}
    let refused = post(&admin);
    assert!(refused.starts_with("http/1.1 429"), "{refused}");
    assert!(refused.contains("connection: close"), "{refused}");
}
