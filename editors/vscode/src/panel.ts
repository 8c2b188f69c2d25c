// What the panels have in common: a page that runs our own script only.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

/** Opens a panel whose page is the script `dist/webview/<name>.js` with the style `media/<name>.css`. */
export function openPanel(context: vscode.ExtensionContext, name: string, title: string): vscode.WebviewPanel {
  const roots = [
    vscode.Uri.joinPath(context.extensionUri, "dist", "webview"),
    vscode.Uri.joinPath(context.extensionUri, "media"),
  ];
  const panel = vscode.window.createWebviewPanel(
    `gridfuse.${name}`,
    title,
    { viewColumn: vscode.ViewColumn.Beside, preserveFocus: false },
    { enableScripts: true, localResourceRoots: roots, retainContextWhenHidden: false, enableCommandUris: false },
  );
  panel.iconPath = vscode.Uri.joinPath(context.extensionUri, "media", "icon.png");
  const nonce = randomBytes(24).toString("base64");
  const local = (...parts: string[]) =>
    panel.webview.asWebviewUri(vscode.Uri.joinPath(context.extensionUri, ...parts)).toString();
  const policy = [
    "default-src 'none'",
    `style-src ${panel.webview.cspSource}`,
    `script-src 'nonce-${nonce}'`,
    "img-src 'none'",
    "form-action 'none'",
  ].join("; ");
  panel.webview.html = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${local("media", `${name}.css`)}">
<title>${title.replace(/[<>&]/g, "")}</title>
</head>
<body>
<main id="content" tabindex="-1"></main>
<script nonce="${nonce}" src="${local("dist", "webview", `${name}.js`)}"></script>
</body>
</html>`;
  return panel;
}
