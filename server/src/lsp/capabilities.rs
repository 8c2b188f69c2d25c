//! What client and server can do.

use std::path::PathBuf;

use tower_lsp_server::ls_types::*;

use super::convert::{Encoding, path_of};
use super::{actions, commands, measure};

/// Clients that can't draw the tables of Markdown, by the names that they give themselves. No capability tells it.
const SHOW_TABLES_AS_WRITTEN: [&str; 3] = ["Neovim", "helix", "Eglot"];

/// What was agreed on in `initialize`.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// How positions count.
    pub encoding: Encoding,
    /// The client asks for diagnostics; none are pushed.
    pub pull_diagnostics: bool,
    /// The client can be told to ask again.
    pub refresh_diagnostics: bool,
    /// Diagnostics may have related information.
    pub related_information: bool,
    /// Diagnostics may link to their documentation.
    pub code_description: bool,
    /// The client understands code actions (not only commands).
    pub code_actions: bool,
    /// Edits of code actions may be filled in later.
    pub resolve_edits: bool,
    /// Refused code actions may be shown with the reason.
    pub disabled_actions: bool,
    /// Preferred actions may be marked.
    pub preferred_actions: bool,
    /// Edits may name versions.
    pub document_changes: bool,
    /// Edits may be annotated.
    pub change_annotations: bool,
    /// Edits may create files.
    pub create_files: bool,
    /// Edits may delete files, and the client tells when one is gone.
    pub delete_files: bool,
    /// Documents can be shown.
    pub show_document: bool,
    /// The client has a command that shows the places of launches.
    pub shows_launches: bool,
    /// The client has a command that lists the rewrites of launches.
    pub shows_rewrites: bool,
    /// The client shows progress that the server begins.
    pub work_done_progress: bool,
    /// The client says that it passes commands on to the server, or that it knows the command that measures.
    pub runs_measure: bool,
    /// The client can be told to ask for code lenses again.
    pub refresh_lenses: bool,
    /// The client can be told to ask for inlay hints again.
    pub refresh_hints: bool,
    /// The client shows tables of Markdown as they are written: they are aligned for it.
    pub aligned_tables: bool,
    /// Hovers are shown as plain text.
    pub plain_hovers: bool,
    /// Watched files can be registered.
    pub watch_files: bool,
    /// The configuration can be asked for.
    pub ask_configuration: bool,
    /// Changes of the configuration can be registered.
    pub register_configuration: bool,
}

impl Session {
    /// Reads the client's capabilities.
    pub fn new(params: &InitializeParams) -> Session {
        let yes = |flag: Option<bool>| flag.unwrap_or(false);
        let workspace = params.capabilities.workspace.clone().unwrap_or_default();
        let document = params.capabilities.text_document.clone().unwrap_or_default();
        let general = params.capabilities.general.clone().unwrap_or_default();
        let edit = workspace.workspace_edit.unwrap_or_default();
        let window = params.capabilities.window.clone().unwrap_or_default();
        let experimental = params.capabilities.experimental.as_ref();
        let commands = experimental.and_then(|experimental| experimental.pointer("/commands/commands")?.as_array());
        let action = document.code_action.unwrap_or_default();
        let resolves = |property: &str| {
            let properties = action.resolve_support.as_ref().map(|support| &support.properties);
            properties.is_some_and(|properties| properties.iter().any(|p| p == property))
        };
        let operations = edit.resource_operations.unwrap_or_default();
        let client = params.client_info.as_ref().map_or("", |client| client.name.as_str());
        Session {
            plain_hovers: document
                .hover
                .and_then(|hover| hover.content_format)
                .is_some_and(|formats| !formats.is_empty() && !formats.contains(&MarkupKind::Markdown)),
            aligned_tables: SHOW_TABLES_AS_WRITTEN.contains(&client),
            encoding: Encoding::negotiate(general.position_encodings.as_deref()),
            pull_diagnostics: document.diagnostic.is_some(),
            refresh_diagnostics: yes(workspace.diagnostics.and_then(|d| d.refresh_support)),
            code_description: yes(document
                .publish_diagnostics
                .as_ref()
                .and_then(|d| d.code_description_support))
                || yes(document.diagnostic.as_ref().and_then(|d| d.code_description_support)),
            related_information: yes(document.publish_diagnostics.and_then(|d| d.related_information))
                || yes(document.diagnostic.and_then(|d| d.related_information)),
            code_actions: action.code_action_literal_support.is_some(),
            resolve_edits: resolves("edit") && yes(action.data_support),
            disabled_actions: yes(action.disabled_support),
            preferred_actions: yes(action.is_preferred_support),
            document_changes: yes(edit.document_changes),
            change_annotations: edit.change_annotation_support.is_some(),
            delete_files: operations.contains(&ResourceOperationKind::Delete)
                && yes(workspace
                    .did_change_watched_files
                    .as_ref()
                    .and_then(|w| w.dynamic_registration)),
            create_files: operations.contains(&ResourceOperationKind::Create),
            show_document: window.show_document.is_some_and(|show| show.support),
            work_done_progress: yes(window.work_done_progress),
            runs_measure: workspace.execute_command.is_some()
                || commands.is_some_and(|known| known.iter().any(|c| c == measure::MEASURE)),
            shows_launches: commands.is_some_and(|known| known.iter().any(|c| c == commands::SHOW_LAUNCHES)),
            shows_rewrites: commands.is_some_and(|known| known.iter().any(|c| c == commands::SHOW_REWRITES)),
            refresh_lenses: yes(workspace.code_lens.and_then(|lens| lens.refresh_support)),
            refresh_hints: yes(workspace.inlay_hint.and_then(|hint| hint.refresh_support)),
            watch_files: yes(workspace.did_change_watched_files.and_then(|w| w.dynamic_registration)),
            ask_configuration: yes(workspace.configuration),
            register_configuration: yes(workspace.did_change_configuration.and_then(|c| c.dynamic_registration)),
        }
    }

    /// The answer to `initialize`.
    pub fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities {
            position_encoding: Some(self.encoding.kind()),
            text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions {
                    include_text: Some(false),
                })),
                ..TextDocumentSyncOptions::default()
            })),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
                code_action_kinds: Some(actions::kinds()),
                resolve_provider: Some(true),
                ..CodeActionOptions::default()
            })),
            code_lens_provider: Some(CodeLensOptions {
                resolve_provider: Some(true),
            }),
            inlay_hint_provider: Some(OneOf::Left(true)),
            call_hierarchy_provider: Some(CallHierarchyServerCapability::Simple(true)),
            execute_command_provider: Some(ExecuteCommandOptions {
                commands: commands::ALL.iter().map(|command| (*command).to_string()).collect(),
                ..ExecuteCommandOptions::default()
            }),
            diagnostic_provider: self.pull_diagnostics.then(|| {
                DiagnosticServerCapabilities::Options(DiagnosticOptions {
                    identifier: Some("gridfuse".to_string()),
                    inter_file_dependencies: true,
                    workspace_diagnostics: false,
                    ..DiagnosticOptions::default()
                })
            }),
            workspace: Some(WorkspaceServerCapabilities {
                workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                    supported: Some(true),
                    change_notifications: Some(OneOf::Left(true)),
                }),
                ..WorkspaceServerCapabilities::default()
            }),
            ..ServerCapabilities::default()
        }
    }

    /// What to register once the client is ready.
    pub fn registrations(&self) -> Vec<Registration> {
        let mut registrations = Vec::new();
        if self.watch_files {
            let options = DidChangeWatchedFilesRegistrationOptions {
                watchers: ["**/*.{cu,cuh,h,hpp}", "**/gridfuse.toml", "**/compile_commands.json"]
                    .map(|pattern| FileSystemWatcher {
                        glob_pattern: GlobPattern::String(pattern.to_string()),
                        kind: None,
                    })
                    .to_vec(),
            };
            registrations.push(Registration {
                id: "gridfuse-files".to_string(),
                method: "workspace/didChangeWatchedFiles".to_string(),
                register_options: serde_json::to_value(options).ok(),
            });
        }
        if self.register_configuration {
            registrations.push(Registration {
                id: "gridfuse-configuration".to_string(),
                method: "workspace/didChangeConfiguration".to_string(),
                register_options: Some(serde_json::json!({ "section": super::config::SECTION })),
            });
        }
        registrations
    }
}

/// The workspace folders that are open at first.
#[expect(deprecated, reason = "old clients send only rootUri")]
pub fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    match &params.workspace_folders {
        Some(folders) if !folders.is_empty() => folders.iter().map(|folder| path_of(&folder.uri)).collect(),
        _ => params.root_uri.iter().map(path_of).collect(),
    }
}
