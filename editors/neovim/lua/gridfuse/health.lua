--- :checkhealth gridfuse
local M = {}

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
  for _, tool in ipairs({ 'nvcc', 'nvidia-smi' }) do
    if vim.fn.executable(tool) == 1 then
      health.ok(('%s: %s'):format(tool, vim.fn.exepath(tool)))
    else
      health.info(('no %s on PATH: :GridfuseMeasure needs it on the machine that measures'):format(tool))
    end
  end
end

return M
