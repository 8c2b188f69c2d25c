--- :GridfuseMeasure: the program as it is and rewritten, on a GPU, with the times in a floating window.
local M = {}

local COMMAND = 'gridfuse.measure'

--- The server can measure.
---@param client vim.lsp.Client
function M.available(client)
  local provider = client.server_capabilities.executeCommandProvider
  return provider ~= nil and vim.tbl_contains(provider.commands or {}, COMMAND)
end

--- `0.0123`, `1.23`, `123`: three digits that say something.
function M.milliseconds(ms)
  local digits = ms > 0 and math.max(0, math.min(6, 2 - math.floor(math.log10(ms)))) or 3
  return string.format('%.' .. digits .. 'f', ms)
end

local function present(value)
  return value ~= nil and value ~= vim.NIL
end

local function agreement(found)
  local kind = found.agreement
  if kind == 'original' then
    return ''
  elseif kind == 'agrees' then
    if found.compared == 0 then
      return 'prints the same'
    end
    return ('agrees (%d buffers%s)'):format(
      found.compared,
      found.unstable > 0 and (', %d not comparable'):format(found.unstable) or ''
    )
  elseif kind == 'differs' then
    return ('DIFFERS: after launch %d, argument %d is %s instead of %s'):format(
      found.launch + 1,
      found.argument + 1,
      found.found,
      found.expected
    )
  elseif kind == 'prints-otherwise' then
    return ('DIFFERS: prints "%s" instead of "%s"'):format(found.found, found.expected)
  end
  return 'not compared: ' .. (found.reason or '')
end

local function row(name, outcome, original)
  local kind = outcome.outcome
  if kind == 'ran' then
    local speedup = original and outcome.median_ms > 0 and original / outcome.median_ms
    return {
      name = name,
      median = outcome.median_ms,
      cells = {
        name,
        M.milliseconds(outcome.median_ms),
        speedup and ('%.1fx'):format(speedup) or '-',
        present(outcome.device_launches) and tostring(outcome.device_launches) or '-',
        agreement(outcome.agreement),
      },
    }
  end
  local why = ({
    refused = function()
      return 'not applicable: ' .. (outcome.reasons[1] or '')
    end,
    ['not-built'] = function()
      return 'does not compile: ' .. (vim.split(outcome.message, '\n')[1] or '')
    end,
    failed = function()
      return vim.split(outcome.message, '\n')[1] or ''
    end,
    ['timed-out'] = function()
      return ('did not finish in %g s'):format(outcome.seconds)
    end,
  })[kind]
  return { name = name, cells = { name, '-', '-', '-', why and why() or kind } }
end

--- The lines of a report, and the rewrites that stand in them, by line.
---@param report table its variants are sorted
---@param last string what can be done
---@return string[] lines, table<integer, string> rewrites
function M.lines(report, last)
  local median = report.original.outcome == 'ran' and report.original.median_ms or nil
  local rows = {}
  for _, variant in ipairs(report.variants) do
    table.insert(rows, row(variant.rewrites, variant.outcome, median))
  end
  table.sort(rows, function(a, b)
    if (a.median ~= nil) ~= (b.median ~= nil) then
      return a.median ~= nil
    end
    if a.median and a.median ~= b.median then
      return a.median < b.median
    end
    return a.name < b.name
  end)
  table.insert(rows, 1, row('original', report.original, nil))
  table.insert(rows, 1, { cells = { 'program', 'GPU time, ms', 'speedup', 'launches', 'result' } })
  local widths = {}
  for _, one in ipairs(rows) do
    for column, cell in ipairs(one.cells) do
      widths[column] = math.max(widths[column] or 0, vim.fn.strdisplaywidth(cell))
    end
  end
  local lines = { ('%s, driver for CUDA %s'):format(report.machine.gpu, report.machine.driver), '' }
  local rewrites = {}
  for index, one in ipairs(rows) do
    local cells = {}
    for column, cell in ipairs(one.cells) do
      local room = (' '):rep(widths[column] - vim.fn.strdisplaywidth(cell))
      -- Numbers to the right.
      table.insert(cells, (column > 1 and column < 5) and room .. cell or cell .. room)
    end
    table.insert(lines, (table.concat(cells, '  '):gsub('%s+$', '')))
    if index > 2 and one.median then
      rewrites[#lines] = one.name
    end
  end
  local told = {}
  for _, variant in ipairs(report.variants) do
    for _, assumption in ipairs(variant.assumptions or {}) do
      told[assumption] = true
    end
  end
  for _, assumption in ipairs(report.assumptions or {}) do
    told[assumption] = true
  end
  for assumption in vim.spairs(told) do
    vim.list_extend(lines, { '', 'assumes: ' .. assumption })
  end
  vim.list_extend(lines, { '', last })
  return lines, rewrites
end

local function float(title, lines)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].filetype = 'gridfuse-measurement'
  local width = 0
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  width = math.max(20, math.min(width, vim.o.columns - 6))
  local height = math.max(3, math.min(#lines, vim.o.lines - 6))
  local window = vim.api.nvim_open_win(buffer, true, {
    relative = 'editor',
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = width,
    height = height,
    style = 'minimal',
    border = 'rounded',
    title = (' gridfuse: %s '):format(title),
  })
  vim.wo[window].wrap = true
  vim.keymap.set('n', 'q', '<cmd>close<cr>', { buffer = buffer, nowait = true })
  return buffer, window
end

--- How long a search that was cancelled may take to end, in milliseconds.
local PATIENCE = 10000

--- What is under way.
---@type { client: vim.lsp.Client, id: integer, cancelled: boolean?, finish: fun() }?
local running

--- Says what is being done and for how long, until it is stopped.
---@param ended fun() the server has said that it has come to its end
local function progress(title, client, ended)
  local started = vim.uv.hrtime()
  local doing = ''
  local heard = vim.api.nvim_create_autocmd('LspProgress', {
    callback = function(event)
      local params = event.data.params or event.data.result
      local value = event.data.client_id == client.id and params and params.value or {}
      if value.kind == 'report' and type(value.message) == 'string' then
        doing = (': %d %%, %s'):format(value.percentage or 0, value.message)
      elseif value.kind == 'end' then
        ended()
      end
    end,
  })
  local timer = assert(vim.uv.new_timer())
  timer:start(0, 1000, vim.schedule_wrap(function()
    if timer:is_closing() then
      return
    end
    local text = ('%s, %d s%s'):format(title, (vim.uv.hrtime() - started) / 1e9, doing)
    -- A longer line would wait for a key.
    vim.api.nvim_echo({ { vim.fn.strcharpart(text, 0, vim.o.columns - 15) } }, false, {})
  end))
  return function()
    timer:stop()
    timer:close()
    vim.api.nvim_del_autocmd(heard)
    vim.api.nvim_echo({ { '' } }, false, {})
  end
end

local function apply(client, uri, line, rewrites)
  local argument = { uri = uri, rewrites = rewrites, line = line }
  local params = { command = 'gridfuse.rewrite', arguments = { argument } }
  require('gridfuse').request(client, 'workspace/executeCommand', params, function(error, result)
    if error then
      vim.notify('gridfuse: ' .. error.message, vim.log.levels.ERROR)
      return
    end
    vim.lsp.util.apply_workspace_edit(result.edit, client.offset_encoding)
  end)
end

--- Lets the server measure the current buffer's program, and hands on the report, the client, and the document.
---@param command string
---@param title string
---@param more table of the command's argument
---@param show fun(report: table, client: vim.lsp.Client, uri: string)
local function execute(command, title, more, show)
  local client = require('gridfuse').client()
  if not client then
    return
  end
  if not M.available(client) then
    vim.notify('gridfuse: this server cannot measure; install a newer one', vim.log.levels.WARN)
    return
  end
  if running then
    vim.notify('gridfuse: something is being measured already; :GridfuseCancel ends it', vim.log.levels.WARN)
    return
  end
  local source = vim.api.nvim_get_current_buf()
  local uri = vim.uri_from_bufnr(source)
  vim.cmd('silent update')
  local own = { client = client }
  local stop = progress(title, client, function()
    -- No answer comes for what was cancelled.
    if own.cancelled then
      own.finish()
    end
  end)
  own.finish = function()
    if running == own then
      running = nil
      stop()
    end
  end
  running = own
  local params = { command = command, arguments = { vim.tbl_extend('error', { uri = uri }, more) } }
  local sent, id = require('gridfuse').request(client, 'workspace/executeCommand', params, function(error, report)
    own.finish()
    if not error then
      show(report, client, uri)
    elseif not own.cancelled then
      vim.notify('gridfuse: ' .. error.message, vim.log.levels.ERROR)
    end
  end, source)
  own.id = id
  if not sent then
    own.finish()
  end
end

--- Ends what is being measured.
function M.cancel()
  local own = running
  if not own then
    vim.notify('gridfuse: nothing is being measured', vim.log.levels.INFO)
    return
  end
  own.cancelled = true
  if vim.fn.has('nvim-0.11') == 1 then
    own.client:cancel_request(own.id)
  else
    own.client.cancel_request(own.id)
  end
  vim.defer_fn(own.finish, PATIENCE)
end

--- Something is being measured.
function M.running()
  return running ~= nil
end

--- Measures the current buffer's program.
---@param args string arguments of the program
---@param line integer? only what stands on this line is rewritten; from 0
function M.run(args, line)
  execute(COMMAND, 'gridfuse: measuring', { args = args, line = line }, function(report, client, uri)
    local lines, rewrites = M.lines(report, '<Enter> applies the rewrite of the line, q closes')
    local buffer, window = float('measurement', lines)
    vim.keymap.set('n', '<cr>', function()
      local wanted = rewrites[vim.api.nvim_win_get_cursor(window)[1]]
      if wanted then
        vim.api.nvim_win_close(window, true)
        apply(client, uri, line, wanted)
      end
    end, { buffer = buffer, nowait = true })
  end)
end

--- The program's arguments that were given last, by document.
local given = {}

--- Asks for the arguments of the current buffer's program, and measures it.
---@param line integer? as for run()
function M.ask(line)
  local client = require('gridfuse').client()
  if not client then
    return
  end
  local uri = vim.uri_from_bufnr(0)
  local function enter()
    vim.ui.input({ prompt = 'Arguments of the program: ', default = given[uri] or '' }, function(args)
      -- None: the user has changed their mind.
      if args then
        given[uri] = args
        M.run(args, line)
      end
    end)
  end
  -- What is missing is told before anything is asked; what else is wrong, when it's measured.
  local params = { command = COMMAND, arguments = { { uri = uri, check = true } } }
  require('gridfuse').request(client, 'workspace/executeCommand', params, function(error)
    if error and type(error.data) == 'table' and error.data.missing then
      vim.notify('gridfuse: ' .. error.message, vim.log.levels.WARN)
    else
      enter()
    end
  end, 0)
end

--- Searches what is fastest for the current buffer's program.
---@param args string arguments of the program
function M.tune(args)
  execute('gridfuse.tune', 'gridfuse: tuning', { args = args }, function(report, client)
    report.variants = {}
    for _, point in ipairs(report.points) do
      table.insert(report.variants, { rewrites = point.point, outcome = point.outcome })
    end
    local edit = present(report.edit) and report.edit or nil
    local last = edit and ('<Enter> applies %s, q closes'):format(report.search.best)
      or 'no combination is faster than the program as it is; q closes'
    local buffer, window = float('tuning', (M.lines(report, last)))
    vim.keymap.set('n', '<cr>', function()
      if edit then
        vim.api.nvim_win_close(window, true)
        vim.lsp.util.apply_workspace_edit(edit, client.offset_encoding)
      end
    end, { buffer = buffer, nowait = true })
  end)
end

return M
