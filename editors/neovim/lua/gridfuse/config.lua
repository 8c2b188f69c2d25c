--- What the user wants, and what the server is started with.
local M = {}

---@class gridfuse.Options
M.defaults = {
  --- The program and its arguments.
  cmd = { 'gridfuse', 'lsp' },
  filetypes = { 'cuda' },
  root_markers = { 'gridfuse.toml', 'compile_commands.json', '.git' },
  --- Show inlay hints.
  inlay_hints = true,
  --- Show code lenses.
  code_lens = true,
  --- Keys in CUDA buffers, as in `{ rewrite = '<leader>gr', explain = '<leader>ge', measure = '<leader>gm' }`; `false` sets none.
  ---@type { rewrite: string?, explain: string?, measure: string? } | false
  keys = false,
  --- Settings of the server: those of gridfuse.toml, as in `{ arch = 'sm_90', inlayHints = { arguments = true } }`.
  settings = {},
}

M.options = vim.deepcopy(M.defaults)

---@param wanted gridfuse.Options?
function M.set(wanted)
  M.options = vim.tbl_deep_extend('force', vim.deepcopy(M.defaults), wanted or {})
end

--- The configuration of the server, as `vim.lsp.config` takes it.
function M.server()
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  -- Commands of the plugin: see init.lua.
  local commands = { 'gridfuse.showLaunches', 'gridfuse.showRewrites', 'gridfuse.measure' }
  capabilities.experimental = { commands = { commands = commands } }
  -- An empty table would be sent as a list.
  local settings = next(M.options.settings) and M.options.settings or vim.empty_dict()
  return {
    cmd = M.options.cmd,
    filetypes = M.options.filetypes,
    root_markers = M.options.root_markers,
    capabilities = capabilities,
    init_options = settings,
    settings = { gridfuse = settings },
    on_attach = function(client, buffer)
      require('gridfuse').attach(client, buffer)
    end,
  }
end

return M
