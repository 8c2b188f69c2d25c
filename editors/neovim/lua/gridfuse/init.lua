--- CUDA dynamic parallelism in Neovim. See |gridfuse|.
local config = require('gridfuse.config')

local M = {}

local group = vim.api.nvim_create_augroup('gridfuse', { clear = true })

--- Starts the server for a buffer. For versions without `vim.lsp.config`.
local function start(buffer)
  local server = config.server()
  server.name = 'gridfuse'
  local name = vim.api.nvim_buf_get_name(buffer)
  server.root_dir = vim.fs.root(buffer, server.root_markers) or vim.fs.dirname(name)
  vim.lsp.start(server, { bufnr = buffer })
end

--- Writes the headers that edits have created or changed: on disk, where the compiler looks for them, what the source needs is missing.
--- One that stands in a window is the user's to write, unless there is nothing on disk.
local function write_headers()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buffer)
    if vim.fs.basename(name) == 'gridfuse.cuh' and vim.bo[buffer].modified then
      local stat = vim.uv.fs_stat(name)
      if not stat or stat.size == 0 or vim.fn.bufwinid(buffer) == -1 then
        vim.api.nvim_buf_call(buffer, function()
          vim.cmd('silent write')
        end)
      end
    end
  end
end

--- What the server takes for granted about the editor, whoever has started it. Once.
local function prepare()
  if vim.lsp.commands['gridfuse.showLaunches'] then
    return
  end
  vim.api.nvim_create_autocmd('BufWritePost', {
    group = vim.api.nvim_create_augroup('gridfuse-headers', { clear = true }),
    pattern = { '*.cu', '*.cuh' },
    callback = write_headers,
  })
  -- A lens of the server: it names places, as an editor's command for references takes them.
  vim.lsp.commands['gridfuse.showLaunches'] = function(command, context)
    local client = vim.lsp.get_client_by_id(context.client_id)
    local encoding = client and client.offset_encoding or 'utf-16'
    local items = vim.lsp.util.locations_to_items(command.arguments[3] or {}, encoding)
    vim.fn.setqflist({}, ' ', { title = 'Launches', items = items })
    vim.cmd('botright copen')
  end
  -- A lens of the server: it names the range of the launches whose rewrites are to be listed.
  vim.lsp.commands['gridfuse.showRewrites'] = function(command, context)
    local client = vim.lsp.get_client_by_id(context.client_id)
    local uri, range = unpack(command.arguments)
    require('gridfuse.commands').rewrite_in(uri, range, client and client.offset_encoding or 'utf-16')
  end
  -- Lenses and actions of the server ask for a measurement of what stands on a line.
  vim.lsp.commands['gridfuse.measure'] = function(command)
    local argument = command.arguments[1] or {}
    require('gridfuse.measure').ask(argument.line)
  end
end

--- Starts the server for CUDA files from now on.
---@param options gridfuse.Options?
function M.setup(options)
  config.set(options)
  vim.api.nvim_clear_autocmds({ group = group })
  if vim.lsp.config then
    vim.lsp.config('gridfuse', config.server())
    vim.lsp.enable('gridfuse')
  else
    vim.api.nvim_create_autocmd('FileType', {
      group = group,
      pattern = config.options.filetypes,
      callback = function(event)
        start(event.buf)
      end,
    })
    for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_is_loaded(buffer) and vim.tbl_contains(config.options.filetypes, vim.bo[buffer].filetype) then
        start(buffer)
      end
    end
  end
end

--- Sends a request, in Neovim 0.10 as well.
---@param client vim.lsp.Client
---@param method string
---@param params table
---@param handler fun(error: table?, result: any)
---@param buffer integer?
---@return boolean sent, integer? id
function M.request(client, method, params, handler, buffer)
  if vim.fn.has('nvim-0.11') == 1 then
    return client:request(method, params, handler, buffer)
  end
  return client.request(method, params, handler, buffer)
end

--- Leaves the hierarchy of calls to a server that knows all calls, not only launches: each function would be listed twice.
local function leave_calls(buffer)
  local ours, others
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buffer })) do
    if client.name == 'gridfuse' then
      ours = client
    else
      others = others or client.server_capabilities.callHierarchyProvider
    end
  end
  if ours and others then
    ours.server_capabilities.callHierarchyProvider = false
  end
end

--- Turns on what the server offers.
---@param client vim.lsp.Client
---@param buffer integer
function M.attach(client, buffer)
  local options = config.options
  prepare()
  -- Those of a server that ran before.
  vim.api.nvim_clear_autocmds({ group = group, buffer = buffer })
  leave_calls(buffer)
  vim.api.nvim_create_autocmd('LspAttach', {
    group = group,
    buffer = buffer,
    callback = function()
      leave_calls(buffer)
    end,
  })
  if options.inlay_hints and vim.lsp.inlay_hint then
    vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  end
  if options.code_lens then
    if vim.lsp.codelens.enable then
      vim.lsp.codelens.enable(true, { bufnr = buffer })
    else
      vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'TextChanged' }, {
        group = group,
        buffer = buffer,
        callback = function()
          vim.lsp.codelens.refresh({ bufnr = buffer })
        end,
      })
      vim.lsp.codelens.refresh({ bufnr = buffer })
    end
  end
  if options.keys then
    local key = function(keys, command, description)
      if keys then
        vim.keymap.set('n', keys, '<cmd>' .. command .. '<cr>', { buffer = buffer, desc = description })
      end
    end
    key(options.keys.rewrite, 'GridfuseRewrite', 'gridfuse: rewrite the launch')
    key(options.keys.explain, 'GridfuseExplain', 'gridfuse: explain the launch')
    if require('gridfuse.measure').available(client) then
      key(options.keys.measure, 'GridfuseMeasure', 'gridfuse: run on the GPU')
    end
  end
end

--- The client that serves a buffer; tells the user when there is none.
---@param buffer integer?
---@return vim.lsp.Client?
function M.client(buffer)
  local client = vim.lsp.get_clients({ name = 'gridfuse', bufnr = buffer or 0 })[1]
  if not client then
    vim.notify('gridfuse: no server runs for this buffer; :checkhealth gridfuse tells why', vim.log.levels.WARN)
  end
  return client
end

--- Starts the server anew.
function M.restart()
  local buffers = {}
  for _, client in ipairs(vim.lsp.get_clients({ name = 'gridfuse' })) do
    for buffer in pairs(client.attached_buffers) do
      table.insert(buffers, buffer)
    end
    if vim.fn.has('nvim-0.11') == 1 then
      client:stop()
    else
      client.stop()
    end
  end
  vim.wait(3000, function()
    return #vim.lsp.get_clients({ name = 'gridfuse' }) == 0
  end)
  for _, buffer in ipairs(buffers) do
    if vim.api.nvim_buf_is_valid(buffer) then
      start(buffer)
    end
  end
end

return M
