"""Train a query mutator: the same as `plaudit train-mutator`, with the same flags.

    python train_query_mutator.py --num-processes 16 --num-steps 32 --ppo-epoch 4 --num-mini-batch 4 \\
        --num-env-steps 20000 --use-batching --servers http://localhost:11434 --model llama3.2
"""

from plaudit.cli.train_mutator import main

if __name__ == "__main__":
    main()
