--- :checkhealth gridfuse
local M = {}

--- How long the program may look for a compiler and a GPU, in ms.
local PATIENCE = 60000

--- Tells what there is to measure with. The program itself says it: the server looks in the same places.
---@param program string
---@param root string? the project's directory
local function measuring(program, root)
  local health = vim.health
  health.start('gridfuse: measuring')
  local root_is_there = root and vim.fn.isdirectory(root) == 1
  local answer = vim
    .system({ program, 'doctor', '--format', 'json' }, { text = true, cwd = root_is_there and root or nil })
    :wait(PATIENCE)
  -- Its exit code says whether something is missing.
  local parsed, doctor = pcall(vim.json.decode, answer.stdout or '', { luanil = { object = true } })
  if not parsed or type(doctor) ~= 'table' or type(doctor.checks) ~= 'table' then
    health.warn(('%s doctor says nothing: %s'):format(program, vim.trim(answer.stderr or '')))
    return
  end
  -- The editor's settings come first, as they do for the server.
  local settings = require('gridfuse.config').options.settings
  local runner = vim.tbl_get(settings, 'measure', 'runner') or doctor.runner
  local elsewhere = runner ~= nil and runner ~= ''
  if elsewhere then
    health.ok(('programs run through `%s`: what is missing here is not needed'):format(runner))
  end
  for _, check in ipairs(doctor.checks) do
    local found = ('%s: %s'):format(check.name, check.found)
    if check.status == 'ok' then
      health.ok(found)
    elseif check.status ~= 'missing' then
      health.info(check.help and ('%s; %s'):format(found, check.help) or found)
    elseif elsewhere then
      health.info(found)
    else
      health.warn(found, check.help and { check.help } or nil)
    end
  end
end

function M.check()
  local health = vim.health
  health.start('gridfuse')
  if vim.fn.has('nvim-0.10') == 1 then
    health.ok('Neovim is new enough')
  else
    health.error('Neovim 0.10 or newer is needed')
  end
  local program = require('gridfuse.config').options.cmd[1]
  if vim.fn.executable(program) == 1 then
    local version = vim.fn.system({ program, '--version' })
    if vim.v.shell_error == 0 then
      health.ok(('%s: %s'):format(vim.fn.exepath(program), vim.trim(version)))
    else
      health.error(('%s does not run: %s'):format(program, vim.trim(version)))
    end
  else
    health.error(('there is no program `%s`'):format(program), {
      'Build it: cargo install --path server, in a checkout of gridfuse',
      "or name it: require('gridfuse').setup({ cmd = { '/path/to/gridfuse', 'lsp' } })",
    })
  end
  local clients = vim.lsp.get_clients({ name = 'gridfuse' })
  if #clients == 0 then
    health.info('no server is running: open a .cu file')
  end
  for _, client in ipairs(clients) do
    health.ok(('server %d runs in %s'):format(client.id, client.root_dir or 'the directory of the file'))
    if not require('gridfuse.measure').available(client) then
      health.info('this server cannot measure')
    end
  end
  if vim.fn.executable(program) == 1 then
    measuring(program, clients[1] and clients[1].root_dir)
  end
end

return M
