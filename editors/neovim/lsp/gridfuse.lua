-- For `vim.lsp.enable('gridfuse')` in Neovim 0.11 and newer.
return require('gridfuse.config').server()
