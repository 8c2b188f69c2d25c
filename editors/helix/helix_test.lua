-- The configuration beside this file in a real Helix, which runs in Neovim's terminal:
-- nvim --headless -u NONE -i NONE -n -l helix_test.lua
--
-- GRIDFUSE_TEST_HELIX names the program with its first arguments, separated by newlines; the working directory has bfs.cu in it.
-- How long anything may take, in ms: tests/src/patience.rs says it. On a busy machine it is much longer than usual.
local PATIENCE = assert(tonumber(os.getenv('GRIDFUSE_TEST_PATIENCE')))

local buffer = vim.api.nvim_create_buf(false, true)
vim.api.nvim_win_set_buf(0, buffer)
local command = vim.split(assert(os.getenv('GRIDFUSE_TEST_HELIX')), '\n')
table.insert(command, 'bfs.cu')
local job = vim.fn.termopen(command)
assert(job > 0)

local function screen()
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
end

local function wait(what, condition)
  if not vim.wait(PATIENCE, condition, 50) then
    io.stderr:write(screen(), '\n')
    error('waited in vain: ' .. what, 2)
  end
  print('ok: ' .. what)
end

local function sees(text)
  return function()
    return screen():find(text, 1, true) ~= nil
  end
end

local function type(keys)
  vim.fn.chansend(job, keys)
end

local function file(name)
  local read = io.open(name)
  local text = read and read:read('*a')
  if read then
    read:close()
  end
  return text or ''
end

local row
for number, line in ipairs(vim.split(file('bfs.cu'), '\n')) do
  if line:find('expand<<<', 1, true) then
    row = number
  end
end
wait('the file is open', sees('Breadth-first search'))
type((':%d\r'):format(row))
wait('the diagnostic', sees('● 1'))
-- To the launch.
type('gs')
type(' k')
wait('the hover', sees('launch of expand'))
type('\27')
-- Escape and a space at once would be Alt-space.
wait('the hover is closed', function()
  return not sees('launch of expand')()
end)
type(' a')
wait('the actions', sees('Collect launches per block'))
local above
for number, line in ipairs(vim.split(screen(), '\n')) do
  if line:find('Best: ', 1, true) then
    above = number
  elseif line:find('Collect launches per block', 1, true) then
    -- The first one, which is the best, is chosen.
    type(('\14'):rep(number - above))
    break
  end
end
type('\r')
wait('the rewrite', function()
  type(':w!\r')
  vim.wait(300)
  return file('bfs.cu'):find('gridfuse::Aggregator<gridfuse::PerBlock', 1, true) ~= nil
end)
type(':wqa!\r')
wait('the end', function()
  return vim.fn.jobwait({ job }, 0)[1] ~= -1
end)
assert(file('gridfuse.cuh') ~= '', 'the header is written')
print('all passed')
