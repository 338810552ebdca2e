//! The table. A new operation is a row here and a handler in the server.

use crate::need::Need;
use crate::parameter::*;
use crate::row::{Answer, Body, Described, Free, Method, Row, Shape, operations};
use shared::alert::{
    Alert, AlertHistory, Alerts, Channel, ChannelInput, Channels, Checked, CodeAlert, CodeAlertTaken, Rule, RuleCheck,
    Rules, Silence, Silences, Tested,
};
use shared::answer::fleet::{FleetColumns, UplinkList};
use shared::answer::logs::LogList;
use shared::answer::markers::{CellList, KernelList, MarkerList, MarkersTaken, ValuesTaken};
use shared::answer::runs::{ListedRun, RunList, RunReport};
use shared::answer::series::{
    ChangedList, CheckList, MetricList, NowFigures, ProcessList, QueryAnswer, SeriesList, SourceList,
};
use shared::answer::usage::GpuTime;
use shared::answer::{ById, Nothing};
use shared::audit::{AuditLog, Usage};
use shared::enrol::{EnrolAnswer, EnrolRequest};
use shared::finding::{Dismissal, DismissedFinding, Findings};
use shared::hub::AboutHub;
use shared::me::{Me, MeChange, NewPassword, OwnIdentities, OwnSessions};
use shared::new_marker::NewMarkers;
use shared::new_values::NewValues;
use shared::note::{NewNote, NoteChange, Notes, SavedNote};
use shared::people::{Erased, Keys, Made, MadeKey, NewPerson, NewServiceKey, People, Person, PersonChange, Reset};
use shared::provider::{Away, ByProvider};
use shared::reported::{NewRun, ReportedEvent};
use shared::role::{KeyScope, Role};
use shared::run_change::RunChange;
use shared::said::Said;
use shared::session::{Again, Agent, AgentChange, Agents, Joined, Joins, NewJoin, Session, Setup, SignIn};
use shared::team::{
    GrantChange, Grants, Invites, MadeInvite, Member, MemberChange, NewInvite, NewService, NewTeam, Service,
    ServiceChange, Services, TakeInvite, Team, TeamChange, TeamEnd, Teams,
};
use shared::views::{DefaultView, MadeShare, NewShare, NewView, OpenShare, SavedView, Shares, ViewChange, Views};

/// Readers of samples.
const READ: Need = Need::Role(Role::Viewer, KeyScope::DataRead);
/// Readers of samples, and holders of a share link within its machines and times.
const SHARED: Need = Need::Shared(KeyScope::DataRead);
/// Writers of saved views; each view has its own rights.
const SAVE: Need = Need::Role(Role::Viewer, KeyScope::ViewsWrite);
/// Readers of job output; the handler checks the machine.
const PRINTED: Need = Need::Role(Role::Member, KeyScope::DataRead);
/// Writers of runs, markers and alerts.
const MARK: Need = Need::Role(Role::Member, KeyScope::RunsWrite);
/// Creators of share links: people only, no programs.
const LINKS: Need = Need::Person(Role::Member);
/// Writers of rules and silences; the handler checks the owner of each rule.
const WATCH: Need = Need::Role(Role::Member, KeyScope::AlertsWrite);
/// Readers of notification channels: people only.
const TARGETS: Need = Need::Person(Role::Member);
/// Writers of notification channels.
const CHANNELS: Need = Need::Role(Role::Admin, KeyScope::TeamAdmin);
/// All members of a team; the handler decides which parts they see and change.
const IN_TEAM: Need = Need::Role(Role::Viewer, KeyScope::TeamAdmin);
/// Admins of the team, and its members if the team allows it.
const INVITE: Need = Need::Role(Role::Member, KeyScope::TeamAdmin);
const OPEN: Need = Need::Open;
const SESSION: Need = Need::Session;
const OWN: Need = Need::Own;
const TEAM_ADMIN: Need = Need::TeamAdmin;
const HUB_ADMIN: Need = Need::HubAdmin;
const SCRAPE: Need = Need::Role(Role::Admin, KeyScope::MetricsRead);
const AUDIT: Need = Need::Role(Role::Admin, KeyScope::AuditRead);
const MEMBERS: Need = Need::Members(KeyScope::DataRead);
const JOIN: Need = Need::Key(KeyScope::AgentJoin);
const AGENT: Need = Need::Key(KeyScope::AgentWrite);

const NOTHING: Body = Body::NOTHING;
const SOCKET: Body = Body::SOCKET;
/// Limit for the data that a machine sends about itself before it is enrolled.
const MAX_EVIDENCE_BYTES: usize = 16 << 10;

const fn takes<T: Described>() -> Body {
    Body::json::<T>()
}

const fn json<T: Described>() -> Answer {
    Answer::Json(Shape::described::<T>())
}

const fn made<T: Described>() -> Answer {
    Answer::Made(Shape::described::<T>())
}

const fn taken<T: Described>() -> Answer {
    Answer::Taken(Shape::described::<T>())
}

const fn text(types: &'static [&'static str]) -> Answer {
    Answer::Text(types, None)
}

/// JSON, or one of the other types by `format`.
const fn text_or<T: Described>(types: &'static [&'static str]) -> Answer {
    Answer::Text(types, Some(Shape::described::<T>()))
}

const PLAIN: &str = "text/plain";
const HTML: &str = "text/html";
const CSV: &str = "text/csv";
const SVG: &str = "image/svg+xml";
const LINES: &str = "application/x-ndjson";
const BYTES: &str = "application/octet-stream";
const EVENTS: &str = "text/event-stream";
const OPENMETRICS: &str = "application/openmetrics-text";

operations! {
    "Server" {
        /// Returns the page and its files
        GetPage = Get "/{*file}", OPEN, NOTHING, [ANY], text(&[HTML]);
        /// Says whether the server is up: `ok`, or 503 while it ends
        GetHealth = Get "/healthz", OPEN, NOTHING, [], text(&[PLAIN]);
        /// Answers paths of the API that are none
        GetUnknown = Get "/api/{*rest}", OPEN, NOTHING, [ANY], json::<Nothing>();
        /// Returns this table as an OpenAPI 3.1 document
        GetOpenApi = Get "/api/v1/openapi.json", SHARED, NOTHING, [], json::<Free>();
        /// Returns every current value for Prometheus, or as OpenMetrics by `Accept`
        GetMetrics = Get "/metrics", SCRAPE, NOTHING, [], text(&[PLAIN, OPENMETRICS]);
    }
    "Samples" {
        /// Lists the metrics of the catalog
        ListMetrics = Get "/api/v1/catalog", SHARED, NOTHING, [], json::<MetricList>();
        /// Lists the machines and the state of their links
        ListSources = Get "/api/v1/sources", SHARED, NOTHING, [], json::<SourceList>();
        /// Returns one row of the fleet overview over time, for every machine of the cluster
        GetFleet = Get "/api/v1/fleet", SHARED, NOTHING, [FLEET_ROW, SOURCES, FROM, TO, STEP], json::<FleetColumns>();
        /// Lists the series
        ListSeries = Get "/api/v1/series", SHARED, NOTHING, [MATCH], json::<SeriesList>();
        /// Returns stored samples, or buckets with min, max, mean, last and count if `step` is given
        QuerySamples = Get "/api/v1/query", SHARED, NOTHING, [TAG, SOURCES, RUN, FROM, TO, STEP, FUNCTION], json::<QueryAnswer>();
        /// Draws series of one unit as a chart
        DrawFigure = Get "/api/v1/figure", SHARED, NOTHING, [TAG, SOURCES, RUN, FROM, TO, STEP, FUNCTION, WIDTH, HEIGHT, THEME], text(&[SVG]);
        /// Downloads samples without a limit of size
        ExportSamples = Get "/api/v1/export", READ, NOTHING, [TAG, SOURCES, RUN, FROM, TO, STEP, FUNCTION, EXPORT_FORMAT], text(&[CSV, LINES, OPENMETRICS]);
        /// Downloads a recording of all machines, for `watchglass replay`
        RecordSamples = Get "/api/v1/record", READ, NOTHING, [FROM, TO], text(&[BYTES]);
        /// Returns the figures on top of a machine's page, as texts
        GetNow = Get "/api/v1/now", SHARED, NOTHING, [SOURCE], json::<NowFigures>();
        /// Lists the series that differ between a time span and the one before
        ListChanges = Get "/api/v1/changed", READ, NOTHING, [SOURCE, FROM, TO], json::<ChangedList>();
        /// Lists the processes, or the largest users of CPU and memory at an instant
        ListProcesses = Get "/api/v1/processes", READ, NOTHING, [SOURCE, AT], json::<ProcessList>();
        /// Lists the checks of `watchglass doctor`
        ListChecks = Get "/api/v1/doctor", READ, NOTHING, [SOURCE], json::<CheckList>();
        /// Lists the links of this machine to hubs
        ListUplinks = Get "/api/v1/uplink", READ, NOTHING, [], json::<UplinkList>();
        /// Follows the stream of the page: over a WebSocket, as server-sent events, or by polling with `cursor`
        FollowLive = Get "/api/v1/live", SHARED, SOCKET, [LIVE_FORMAT, SOURCES, CURSOR], Answer::Socket(&[EVENTS, BYTES]);
        /// Sends the messages of a page that has no WebSocket
        SendToLive = Post "/api/v1/live/{viewer}", SHARED, takes::<Said>(), [], json::<Nothing>();
    }
    "Training jobs" {
        /// Lists the training jobs, newest first
        ListRuns = Get "/api/v1/runs", SHARED, NOTHING, [STATES, FAILURES, PROJECT, GROUP, JOB_TYPE, USER, RUN_TAG, SOURCE, SEARCH, FROM, TO, BEFORE_RUN, LIMIT, SUMS], json::<RunList>();
        /// Reports the start of a job on a machine: by the owner of its server, or by a member of its team on a hub
        AddRun = Post "/api/v1/runs", MARK, takes::<NewRun>(), [SOURCE], taken::<ById>();
        /// Logs values of a job, such as its loss, for the next tick
        LogValues = Post "/api/v1/values", MARK, takes::<NewValues>(), [SOURCE], json::<ValuesTaken>();
        /// Returns one job
        GetRun = Get "/api/v1/runs/{id}", SHARED, NOTHING, [], json::<ListedRun>();
        /// Changes the name, group, type, notes or tags of a job; 409 if somebody else was faster
        ChangeRun = Patch "/api/v1/runs/{id}", MARK, takes::<RunChange>(), [], json::<ListedRun>();
        /// Deletes a job that has ended, by its maker or an admin of its team
        RemoveRun = Delete "/api/v1/runs/{id}", MARK, NOTHING, [], json::<ById>();
        /// Reports that a job is alive or has ended; without a report for a minute it is *unreachable*
        AddRunEvent = Post "/api/v1/runs/{id}/events", MARK, takes::<ReportedEvent>(), [SOURCE], json::<ById>();
        /// Returns the report of a job, also when its samples have gone
        GetRunReport = Get "/api/v1/runs/{id}/report", READ, NOTHING, [REPORT_FORMAT], text_or::<RunReport>(&[HTML]);
        /// Returns the output of a job
        ListRunLogs = Get "/api/v1/runs/{id}/logs", PRINTED, NOTHING, [FROM, TO, RANK, PROCESS_LABEL, OUTPUT_STREAM, LINE_TEXT, LIMIT, LOG_FORMAT], text_or::<LogList>(&[LINES, PLAIN]);
    }
    "Notebooks" {
        /// Lists the Jupyter kernels of the user who runs the server
        ListKernels = Get "/api/v1/kernels", READ, NOTHING, [SOURCE], json::<KernelList>();
        /// Lists the newest runs of notebook cells
        ListCells = Get "/api/v1/cells", READ, NOTHING, [KERNEL, SOURCE, FROM, TO], json::<CellList>();
        /// Lists the markers
        ListMarkers = Get "/api/v1/markers", SHARED, NOTHING, [KERNEL, MARKER_KIND, RUN, SOURCE, FROM, TO], json::<MarkerList>();
        /// Adds a marker, or up to 256 as `{"markers": [...]}`
        AddMarkers = Post "/api/v1/markers", MARK, takes::<NewMarkers>(), [SOURCE], json::<MarkersTaken>();
    }
    "Notes" {
        /// Lists the notes of people about machines and runs, in order of time
        ListNotes = Get "/api/v1/notes", READ, NOTHING, [SOURCE, RUN, NOTE_TEXT, FROM, TO], json::<Notes>();
        /// Adds a note about a machine or a run, by a member of the team of the machine
        AddNote = Post "/api/v1/notes", MARK, takes::<NewNote>(), [], made::<SavedNote>();
        /// Changes the text of a note, by its writer or an admin; 409 if somebody else was faster
        ChangeNote = Put "/api/v1/notes/{id}", MARK, takes::<NoteChange>(), [], json::<SavedNote>();
        /// Removes a note
        RemoveNote = Delete "/api/v1/notes/{id}", MARK, NOTHING, [], json::<ById>();
    }
    "Findings and alerts" {
        /// Lists what is wrong with the machines, and what was
        ListFindings = Get "/api/v1/findings", SHARED, NOTHING, [SOURCES, FINDING_KIND, ACTIVE, FROM, TO], json::<Findings>();
        /// Marks a finding as wrong, or takes that back
        DismissFinding = Post "/api/v1/findings/wrong", WATCH, takes::<Dismissal>(), [], json::<DismissedFinding>();
        /// Lists the alerts that fire and fired
        ListAlerts = Get "/api/v1/alerts", READ, NOTHING, [TEAM, ALERT_STATE, RULE, SOURCE, RUN, FROM, TO, LIMIT], json::<Alerts>();
        /// Raises an alert from code
        RaiseAlert = Post "/api/v1/alerts", MARK, takes::<CodeAlert>(), [], taken::<CodeAlertTaken>();
        /// Returns one alert and its history
        GetAlert = Get "/api/v1/alerts/{id}", SHARED, NOTHING, [], json::<AlertHistory>();
        /// Acknowledges an alert
        AcknowledgeAlert = Post "/api/v1/alerts/{id}/ack", WATCH, NOTHING, [], json::<Alert>();
        /// Lists the alert rules
        ListRules = Get "/api/v1/rules", READ, NOTHING, [TEAM], json::<Rules>();
        /// Adds an alert rule
        AddRule = Post "/api/v1/rules", WATCH, takes::<Rule>(), [TEAM], made::<Rule>();
        /// Says what a rule would have done in the last hours
        CheckRule = Post "/api/v1/rules/check", WATCH, takes::<RuleCheck>(), [], json::<Checked>();
        /// Changes an alert rule
        ChangeRule = Put "/api/v1/rules/{id}", WATCH, takes::<Rule>(), [], json::<Rule>();
        /// Removes an alert rule
        RemoveRule = Delete "/api/v1/rules/{id}", WATCH, NOTHING, [], json::<ById>();
        /// Lists the silences
        ListSilences = Get "/api/v1/silences", READ, NOTHING, [TEAM], json::<Silences>();
        /// Adds a silence
        AddSilence = Post "/api/v1/silences", WATCH, takes::<Silence>(), [TEAM], made::<Silence>();
        /// Ends a silence
        EndSilence = Delete "/api/v1/silences/{id}", WATCH, NOTHING, [], json::<ById>();
        /// Lists the channels for notices
        ListChannels = Get "/api/v1/channels", TARGETS, NOTHING, [TEAM], json::<Channels>();
        /// Adds a channel
        AddChannel = Post "/api/v1/channels", CHANNELS, takes::<ChannelInput>(), [TEAM], made::<Channel>();
        /// Changes a channel
        ChangeChannel = Put "/api/v1/channels/{id}", CHANNELS, takes::<ChannelInput>(), [], json::<Channel>();
        /// Removes a channel
        RemoveChannel = Delete "/api/v1/channels/{id}", CHANNELS, NOTHING, [], json::<ById>();
        /// Sends a test notice and waits for its result
        TestChannel = Post "/api/v1/channels/{id}/test", CHANNELS, NOTHING, [], json::<Tested>();
    }
    "Views and share links" {
        /// Lists the saved views
        ListViews = Get "/api/v1/views", READ, NOTHING, [TEAM], json::<Views>();
        /// Saves a view
        AddView = Post "/api/v1/views", SAVE, takes::<NewView>(), [TEAM], made::<SavedView>();
        /// Changes a view; 409 with both versions if somebody else was faster
        ChangeView = Put "/api/v1/views/{id}", SAVE, takes::<ViewChange>(), [], json::<SavedView>();
        /// Removes a view
        RemoveView = Delete "/api/v1/views/{id}", SAVE, NOTHING, [], json::<ById>();
        /// Sets the view that a team sees first
        SetDefaultView = Put "/api/v1/teams/{team}/default-view", TEAM_ADMIN, takes::<DefaultView>(), [], json::<Team>();
        /// Lists the share links
        ListShares = Get "/api/v1/shares", LINKS, NOTHING, [TEAM], json::<Shares>();
        /// Adds a share link
        AddShare = Post "/api/v1/shares", LINKS, takes::<NewShare>(), [TEAM], made::<MadeShare>();
        /// Revokes a share link
        EndShare = Delete "/api/v1/shares/{id}", LINKS, NOTHING, [], json::<ById>();
        /// Opens a share link
        OpenShare = Post "/api/v1/shares/open", SESSION, takes::<OpenShare>(), [], json::<Session>();
    }
    "Sign-in" {
        /// Returns the current session and the ways to sign in
        GetSession = Get "/api/v1/session", SESSION, NOTHING, [], json::<Session>();
        /// Signs in with a password
        SignIn = Post "/api/v1/session", SESSION, takes::<SignIn>(), [], json::<Session>();
        /// Signs out
        SignOut = Delete "/api/v1/session", SESSION, NOTHING, [], json::<Session>();
        /// Adds the first admin of a hub
        SetUp = Post "/api/v1/session/setup", SESSION, takes::<Setup>(), [], json::<Session>();
        /// Accepts an invitation
        TakeInvite = Post "/api/v1/session/invite", SESSION, takes::<TakeInvite>(), [], json::<Session>();
        /// Sets a new password by the code of an admin
        ResetPassword = Post "/api/v1/session/reset", SESSION, takes::<Reset>(), [], json::<Session>();
        /// Starts a sign-in by a provider
        BeginProviderSignIn = Post "/api/v1/session/oidc", SESSION, takes::<ByProvider>(), [], json::<Away>();
        /// Ends a sign-in by a provider; browsers come here
        EndProviderSignIn = Get "/auth/{provider}/callback", SESSION, NOTHING, [CODE, FLOW, ANY], Answer::Redirect;
        /// Confirms the password of a session
        ConfirmPassword = Post "/api/v1/session/again", OWN, takes::<Again>(), [], json::<Session>();
    }
    "Your account" {
        /// Returns your account
        GetMe = Get "/api/v1/me", OWN, NOTHING, [], json::<Me>();
        /// Changes your account
        ChangeMe = Patch "/api/v1/me", OWN, takes::<MeChange>(), [], json::<Me>();
        /// Erases your account
        EraseMe = Delete "/api/v1/me", OWN, NOTHING, [], json::<Erased>();
        /// Sets your password
        SetMyPassword = Put "/api/v1/me/password", OWN, takes::<NewPassword>(), [], json::<Nothing>();
        /// Lists your sessions
        ListMySessions = Get "/api/v1/me/sessions", OWN, NOTHING, [], json::<OwnSessions>();
        /// Ends one of your sessions
        EndMySession = Delete "/api/v1/me/sessions/{id}", OWN, NOTHING, [], json::<ById>();
        /// Lists your identities at providers
        ListMyIdentities = Get "/api/v1/me/identities", OWN, NOTHING, [], json::<OwnIdentities>();
        /// Removes one of your identities
        RemoveMyIdentity = Delete "/api/v1/me/identities/{id}", OWN, NOTHING, [], json::<ById>();
        /// Downloads everything that names your account
        ExportMe = Get "/api/v1/me/export", OWN, NOTHING, [], json::<Free>();
        /// Lists your keys
        ListMyKeys = Get "/api/v1/me/keys", OWN, NOTHING, [], json::<Keys>();
        /// Adds a key of yours
        AddMyKey = Post "/api/v1/me/keys", OWN, takes::<NewServiceKey>(), [], made::<MadeKey>();
        /// Revokes one of your keys
        EndMyKey = Delete "/api/v1/me/keys/{id}", OWN, NOTHING, [], json::<ById>();
    }
    "Teams" {
        /// Lists the teams
        ListTeams = Get "/api/v1/teams", IN_TEAM, NOTHING, [], json::<Teams>();
        /// Adds a team
        AddTeam = Post "/api/v1/teams", HUB_ADMIN, takes::<NewTeam>(), [], made::<Team>();
        /// Returns a team with its members and machines
        GetTeam = Get "/api/v1/teams/{team}", IN_TEAM, NOTHING, [], json::<Team>();
        /// Changes a team
        ChangeTeam = Patch "/api/v1/teams/{team}", TEAM_ADMIN, takes::<TeamChange>(), [], json::<Team>();
        /// Removes a team
        RemoveTeam = Delete "/api/v1/teams/{team}", HUB_ADMIN, takes::<TeamEnd>(), [], json::<Nothing>();
        /// Adds a member or changes their role
        SetMember = Put "/api/v1/teams/{team}/members/{person}", TEAM_ADMIN, takes::<MemberChange>(), [], json::<Member>();
        /// Removes a member
        RemoveMember = Delete "/api/v1/teams/{team}/members/{person}", IN_TEAM, NOTHING, [], json::<Nothing>();
        /// Lists the open invitations
        ListInvites = Get "/api/v1/teams/{team}/invites", INVITE, NOTHING, [], json::<Invites>();
        /// Adds an invitation
        AddInvite = Post "/api/v1/teams/{team}/invites", INVITE, takes::<NewInvite>(), [], made::<MadeInvite>();
        /// Revokes an invitation
        EndInvite = Delete "/api/v1/teams/{team}/invites/{id}", INVITE, NOTHING, [], json::<ById>();
        /// Lists the accounts of programs
        ListServices = Get "/api/v1/teams/{team}/services", TEAM_ADMIN, NOTHING, [], json::<Services>();
        /// Adds the account of a program
        AddService = Post "/api/v1/teams/{team}/services", TEAM_ADMIN, takes::<NewService>(), [], made::<Service>();
        /// Changes the account of a program
        ChangeService = Patch "/api/v1/teams/{team}/services/{service}", TEAM_ADMIN, takes::<ServiceChange>(), [], json::<Service>();
        /// Removes the account of a program
        RemoveService = Delete "/api/v1/teams/{team}/services/{service}", TEAM_ADMIN, NOTHING, [], json::<Nothing>();
        /// Lists the keys of a program
        ListServiceKeys = Get "/api/v1/teams/{team}/services/{service}/keys", TEAM_ADMIN, NOTHING, [], json::<Keys>();
        /// Adds a key of a program
        AddServiceKey = Post "/api/v1/teams/{team}/services/{service}/keys", TEAM_ADMIN, takes::<NewServiceKey>(), [], made::<MadeKey>();
        /// Revokes a key of a program
        EndServiceKey = Delete "/api/v1/teams/{team}/services/{service}/keys/{id}", TEAM_ADMIN, NOTHING, [], json::<ById>();
        /// Lists the keys of a team
        ListTeamKeys = Get "/api/v1/teams/{team}/keys", TEAM_ADMIN, NOTHING, [], json::<Keys>();
        /// Adds a key of a team
        AddTeamKey = Post "/api/v1/teams/{team}/keys", TEAM_ADMIN, takes::<NewServiceKey>(), [], made::<MadeKey>();
        /// Revokes a key of a team
        EndTeamKey = Delete "/api/v1/teams/{team}/keys/{id}", TEAM_ADMIN, NOTHING, [], json::<ById>();
    }
    "Machines" {
        /// Lists the join keys
        ListJoinKeys = Get "/api/v1/teams/{team}/join", TEAM_ADMIN, NOTHING, [], json::<Joins>();
        /// Adds a join key
        AddJoinKey = Post "/api/v1/teams/{team}/join", TEAM_ADMIN, takes::<NewJoin>(), [], made::<Joined>();
        /// Revokes a join key
        EndJoinKey = Delete "/api/v1/teams/{team}/join/{id}", TEAM_ADMIN, NOTHING, [], json::<ById>();
        /// Lists the machines of a team
        ListAgents = Get "/api/v1/teams/{team}/agents", TEAM_ADMIN, NOTHING, [], json::<Agents>();
        /// Changes the name or the labels of a machine
        ChangeAgent = Patch "/api/v1/teams/{team}/agents/{source}", TEAM_ADMIN, takes::<AgentChange>(), [], json::<Agent>();
        /// Revokes the key of a machine; its samples stay
        RevokeAgent = Delete "/api/v1/teams/{team}/agents/{source}", TEAM_ADMIN, NOTHING, [], json::<Agent>();
        /// Approves a machine that waits to join
        ApproveAgent = Post "/api/v1/teams/{team}/agents/{source}/approve", TEAM_ADMIN, NOTHING, [], json::<Agent>();
        /// Lists the teams that see a machine
        ListGrants = Get "/api/v1/sources/{source}/grants", HUB_ADMIN, NOTHING, [], json::<Grants>();
        /// Sets the teams that see a machine
        SetGrants = Put "/api/v1/sources/{source}/grants", HUB_ADMIN, takes::<GrantChange>(), [], json::<Grants>();
        /// Removes a machine and its samples
        RemoveSource = Delete "/api/v1/sources/{source}", HUB_ADMIN, NOTHING, [], json::<ById>();
        /// Enrolls a machine by a join key
        EnrollAgent = Post "/api/v1/ingest/enrol", JOIN, Body::at_most::<EnrolRequest>(MAX_EVIDENCE_BYTES), [], taken::<EnrolAnswer>();
        /// Links an agent to the hub
        LinkAgent = Get "/api/v1/ingest", AGENT, SOCKET, [], Answer::Socket(&[]);
    }
    "Hub" {
        /// Returns the version, the database and the counters of a hub
        GetHub = Get "/api/v1/hub", HUB_ADMIN, NOTHING, [], json::<AboutHub>();
        /// Lists the accounts
        ListAccounts = Get "/api/v1/accounts", HUB_ADMIN, NOTHING, [], json::<People>();
        /// Adds an account
        AddAccount = Post "/api/v1/accounts", HUB_ADMIN, takes::<NewPerson>(), [], made::<Made>();
        /// Changes an account
        ChangeAccount = Patch "/api/v1/accounts/{person}", HUB_ADMIN, takes::<PersonChange>(), [], json::<Person>();
        /// Removes an account
        RemoveAccount = Delete "/api/v1/accounts/{person}", HUB_ADMIN, NOTHING, [], json::<Nothing>();
        /// Makes a code by which a person sets their password
        ResetAccount = Post "/api/v1/accounts/{person}/reset", HUB_ADMIN, NOTHING, [], made::<Made>();
        /// Removes an account, and its name from the audit log
        EraseAccount = Post "/api/v1/accounts/{person}/erase", HUB_ADMIN, NOTHING, [], json::<Erased>();
        /// Lists the keys of a person
        ListAccountKeys = Get "/api/v1/accounts/{person}/keys", HUB_ADMIN, NOTHING, [], json::<Keys>();
        /// Adds a key of a person
        AddAccountKey = Post "/api/v1/accounts/{person}/keys", HUB_ADMIN, takes::<NewServiceKey>(), [], made::<MadeKey>();
        /// Revokes a key of a person
        EndAccountKey = Delete "/api/v1/accounts/{person}/keys/{id}", HUB_ADMIN, NOTHING, [], json::<ById>();
        /// Lists the entries of the audit log, newest first
        ListAudit = Get "/api/v1/audit", AUDIT, NOTHING, [TEAM, WHO, ACTION, OBJECT, FROM, TO, BEFORE_ENTRY, LIMIT], json::<AuditLog>();
        /// Returns what was used, by day, machine or key
        GetUsage = Get "/api/v1/usage", MEMBERS, NOTHING, [TEAM, USAGE_BY, FROM, TO, USAGE_FORMAT], text_or::<Usage>(&[CSV]);
        /// Returns the GPU time of training jobs, by day, month, project, user or run
        GetGpuTime = Get "/api/v1/usage/runs", MEMBERS, NOTHING, [TEAM, GPU_TIME_BY, FROM, TO, USAGE_FORMAT], text_or::<GpuTime>(&[CSV]);
    }
}
