;;; gridfuse.el --- CUDA dynamic parallelism with eglot  -*- lexical-binding: t -*-

;;; Commentary:
;; Loading this file starts gridfuse for .cu and .cuh files, through eglot (built in since Emacs 29).

;;; Code:

(require 'cc-mode)
(require 'eglot)

(defgroup gridfuse nil
  "CUDA dynamic parallelism."
  :group 'tools)

(defcustom gridfuse-program "gridfuse"
  "The gridfuse program."
  :type 'string)

(unless (fboundp 'cuda-mode)
  (define-derived-mode cuda-mode c++-mode "CUDA"
    "C++ with kernels."))

(add-to-list 'auto-mode-alist '("\\.cuh?\\'" . cuda-mode))
(add-to-list 'eglot-server-programs (cons 'cuda-mode (lambda (&rest _) (list gridfuse-program "lsp"))))
(add-hook 'cuda-mode-hook #'eglot-ensure)

(provide 'gridfuse)
;;; gridfuse.el ends here
